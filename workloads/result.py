"""Writing a result, whole or not at all; and what is known of it before its end."""

import json
import os
import tempfile


def write(path, result):
    """Write ``result`` as JSON to ``path``, which holds all of it or what it held before.

    Raises:
        ValueError: a number in it is not finite.
        OSError: the disk is full or the folder cannot be written.
    """
    content = json.dumps(result, allow_nan=False, sort_keys=True, indent=1).encode()
    folder, name = os.path.split(os.path.abspath(path))
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".%s." % name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def append(path, found):
    """Add ``found`` as a line of JSON to ``path``, at once: what a launch that dies later leaves behind.

    Raises:
        ValueError: a number in it is not finite.
        OSError: the disk is full or the folder cannot be written.
    """
    with open(path, "a") as file:
        file.write(json.dumps(found, allow_nan=False, sort_keys=True) + "\n")
