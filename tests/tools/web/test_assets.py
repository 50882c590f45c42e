import json

from gnomon.tools.web.assets import as_script


def test_json_in_a_script_cannot_end_it():
    values = {"a": ["</script>", "<!--", "\u2028", "&amp;"]}
    text = as_script(values)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == values
