"""What may be asked, as JSON Schema: the same forms check requests and are shown in the OpenAPI page."""

from __future__ import annotations

from typing import Any

from dpsr.certify.folder import MalformedError, first_violation, strict_json
from dpsr.web.guard import Refusal

MOST_PEOPLE = 100
MOST_RATINGS = 1_000
MOST_ITEMS = 1_000
MOST_PAIRS = 10_000
MOST_LISTED = 100
LARGEST_BODY = 1 << 20

Form = dict[str, Any]

ID: Form = {"title": "id", "type": ["string", "integer"], "maxLength": 200}
NUMBER: Form = {"title": "items in a list", "type": "integer", "minimum": 1, "maximum": MOST_LISTED}


def _array(of: Form, most: int, least: int = 1) -> Form:
    return {"type": "array", "items": of, "minItems": least, "maxItems": most}


def _object(required: list[str], **properties: Form) -> Form:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


OWN_RATING: Form = _object(["item"], item=ID, rating={"type": "number"})
PERSON: Form = _object(["ratings"], ratings=_array(OWN_RATING, MOST_RATINGS, 0), items=_array(ID, MOST_ITEMS), n=NUMBER)

RECOMMEND: Form = _object(
    ["users"], users=_array(ID, MOST_PEOPLE), n=NUMBER, unknown={"type": "string", "enum": ["error", "average"]}
)
PREDICT: Form = _object(["items"], items=_array(ID, MOST_PAIRS), users=_array(ID, MOST_PAIRS))
FOLD_IN: Form = _object(["people"], people=_array(PERSON, MOST_PEOPLE), n=NUMBER)


def read_form(body: bytes, kind: bytes, form: Form) -> dict[str, Any]:
    """The request a body holds, or a refusal that says what is wrong with it."""
    if kind.split(b";")[0].strip().lower() != b"application/json":
        raise Refusal(415, "The body must be JSON. Send it with the header content-type: application/json.")
    try:
        record = strict_json(body)
    except MalformedError as error:
        raise Refusal(400, f"The body must be strict JSON: {error}. See /docs for one that is right.") from None
    wrong = first_violation(record, form, "the request")
    if wrong is not None:
        raise Refusal(422, f"{wrong[0].upper()}{wrong[1:]}. See /docs for a request that is right.")
    return dict(record)
