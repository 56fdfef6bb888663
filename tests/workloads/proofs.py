"""What a proof says."""


def list_failing(proved):
    """Return the names of the checks that do not hold."""
    return {check["name"] for check in proved["checks"] if check["error"] > check["tolerance"]}
