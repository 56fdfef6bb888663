"""What holds for all tests."""

import signal

# Whoever starts tests in the background of a shell has them ignore Ctrl-C, and their children too; what tests
# do about an interruption needs it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
