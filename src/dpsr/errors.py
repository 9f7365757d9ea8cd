"""Every error a user can meet. Each message says what must hold, what was found and what to do next."""


class DpsrError(Exception):
    """Base of all errors raised on purpose; the command line turns it into one sentence and exit code 2."""


class DataError(DpsrError, ValueError):
    """The ratings cannot be read as a rating table."""


class ScaleError(DataError):
    """A rating scale is ill-formed, or a rating does not lie on it."""


class PrivacyError(DpsrError, ValueError):
    """A privacy parameter is refused, or a promise cannot be kept."""


class LedgerError(PrivacyError):
    """The ledger cannot be reached, is not a ledger, or was changed by other hands."""


class UnansweredError(LedgerError):
    """A ledger was told of a release and does not say whether it has recorded it."""


class ReleaseError(DpsrError, ValueError):
    """A release folder cannot be written or read."""


class SignatureError(ReleaseError):
    """A key cannot be used, or a release cannot be signed."""


class ParameterError(DpsrError, ValueError):
    """A setting that cannot change the guarantee is outside its range."""


class NotFittedError(DpsrError, ValueError, AttributeError):
    """A pipeline is asked for what only a fitted one has; its bases are those of scikit-learn's error of this name."""
