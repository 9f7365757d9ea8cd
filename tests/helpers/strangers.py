"""Ids that try to be more than text."""

PAYLOADS = (
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    '"><img src=x onerror=window.pwned=1>',
    "' onmouseover='window.pwned=1' x='",
    '" onfocus="window.pwned=1" autofocus tabindex="1',
    "</style><script>window.pwned=1</script>",
    "</title></svg><script>window.pwned=1</script>",
    "<!--<script>window.pwned=1",
    "]]><svg onload=window.pwned=1>",
    "{{ 7 * 191 }}{% raw %}",
    "javascript:window.pwned=1",
    "&lt;b&gt;&#60;script&#62;",
    "a\u2028b\u2029c",
    "abc\u202egnp.exe",
    "a\x00b\x1b[31mc\r\nd",
    "👩‍👩‍👧 émoji",
    "Z" + "\u0335\u0352" * 60,
    " ",
    "x" * 10_000,
    "<b>" * 3_000,
)
