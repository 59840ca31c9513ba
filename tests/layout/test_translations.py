"""The README's first screen in other languages: the same commands, byte for byte, the same headings, points and links."""
import os
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LANGUAGES = {"ja": "日本語", "zh": "简体中文", "ko": "한국어"}
PAGES = {name: f"docs/README.{name}.md" for name in LANGUAGES}
FIRST_AFTER = "## Six figures"  # what follows the first screen
BLOCK = re.compile(r"^(?:<!-- .*? -->\n)?```.*?^```$", re.M | re.S)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
LANGUAGE_LINE = re.compile(r"^\[[^\]]+\]\([^)]*README[^)]*\) · .*\n", re.M)
ALL = {"README.md": "English", **{page: LANGUAGES[name] for name, page in PAGES.items()}}


def first_screen(page):
    text = (ROOT / page).read_text()
    return text[:text.index(FIRST_AFTER)] if page == "README.md" else text


def targets(page, text):
    """Linked files, from the root of the repository."""
    folder = pathlib.Path(page).parent
    return [os.path.normpath(folder / target.split("#")[0]) for target in LINK.findall(BLOCK.sub("", text))]


@pytest.mark.parametrize("page", PAGES.values())
def test_commands_are_the_readmes(page):
    blocks = BLOCK.findall(first_screen("README.md"))
    assert len(blocks) == 3 and BLOCK.findall(first_screen(page)) == blocks


@pytest.mark.parametrize("page", PAGES.values())
def test_headings_points_and_links_are_the_readmes(page):
    """After them, the index: the other pages are in English."""
    own, readme = (LANGUAGE_LINE.sub("", first_screen(one)) for one in (page, "README.md"))

    def shape(text):
        return re.findall(r"^(#+|-) ", BLOCK.sub("", text), re.M)

    assert shape(own) == shape(readme)
    assert targets(page, own) == [*targets("README.md", readme), "docs/index.md"]
    assert all((ROOT / target).exists() for target in targets(page, own))


@pytest.mark.parametrize("page", ALL)
def test_every_language_leads_to_the_others_at_the_top(page):
    line = LANGUAGE_LINE.search(first_screen(page))
    assert line and line.start() < first_screen(page).index("![")
    assert set(zip(targets(page, line[0]), re.findall(r"\[([^\]]+)\]", line[0]))) == {one for one in ALL.items() if one[0] != page}


def test_the_index_leads_to_all():
    assert set(PAGES.values()) <= set(targets("docs/index.md", (ROOT / "docs/index.md").read_text()))


@pytest.mark.parametrize("page", PAGES.values())
def test_a_page_is_in_its_language(page):
    """Not a copy: most of its words have the script of the language."""
    script = {"ja": r"[\u3040-\u30ff]", "zh": r"[\u4e00-\u9fff]", "ko": r"[\uac00-\ud7a3]"}[page.split(".")[1]]
    assert len(re.findall(script, BLOCK.sub("", first_screen(page)))) > 300
