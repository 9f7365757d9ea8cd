"""Who may use the studio, from where, and what a request can make it do."""

import re
import sqlite3

import pytest
from studio_process import Studio, run, studio_in

from dpsr import DPSR
from dpsr.certify.amounts import epsilon_text
from dpsr.certify.folder import write_manifest
from dpsr.certify.normal_price import chance_beyond
from dpsr.data import realistic
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.studio.session import Sessions
from dpsr.web.guard import Refusal

pytestmark = pytest.mark.slow  # twenty seconds in all, of the studio's processes: no list of single tests knows that

CHOSEN = "source=ratings.csv&user=user&item=item&rating=rating&scale=1:5:1&epsilon=0.5"


@pytest.fixture(scope="module")
def inside(studio):
    studio.set_cookie = studio.enter()
    return studio


def stranger(studio):
    return Studio(studio.process, studio.link)


def test_it_says_where_it_listens_and_that_it_is_this_machine_alone(studio):
    assert f"Listening on http://127.0.0.1:{studio.port}, for this machine alone" in studio.said


def test_without_the_link_or_with_a_wrong_token_every_page_is_refused_with_what_to_do(inside):
    outside = stranger(inside)
    for path in ("/", "/columns?source=ratings.csv", "/choose", "/review", "/run?id=1", "/release", "/card", "/try"):
        status, page, _ = outside.ask("GET", path)
        assert status == 403
        assert "Press Enter in the terminal" in page
    for token in ("", "wrong", "é", "x" * 3_000):
        assert outside.ask("GET", f"/?token={token.encode('ascii', 'ignore').decode()}")[0] == 403
    assert outside.ask("GET", "/", cookie=f"dpsr_studio_{inside.port}=guessed")[0] == 403


def test_the_link_works_once(inside):
    assert stranger(inside).ask("GET", inside.link.removeprefix(inside.address))[0] == 403
    assert inside.ask("GET", "/")[0] == 200


def test_another_link_makes_the_unused_one_void_and_leaves_sessions_alone():
    sessions = Sessions(1)
    first = sessions.redeem(sessions.new_link())
    unused, newer = sessions.new_link(), sessions.new_link()
    with pytest.raises(Refusal):
        sessions.redeem(unused)
    assert sessions.redeem(newer) != first
    cookie = first.split(";")[0].partition("=")[2]
    assert sessions.secret_of({sessions.cookie: cookie}, {})


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(inside):
    assert "HttpOnly" in inside.set_cookie
    assert "SameSite=Strict" in inside.set_cookie


def test_a_form_from_another_origin_without_the_secret_or_without_an_origin_does_nothing(inside, folder):
    secret = inside.secret(f"/review?{CHOSEN}")
    form = dict(pair.split("=") for pair in CHOSEN.split("&")) | {"order": "a" * 32, "out": "forged"}
    own = {"origin": inside.address}
    for headers, more in [
        ({"origin": "http://evil.example"}, {"form_secret": secret}),
        ({"origin": f"http://127.0.0.1:{inside.port + 1}"}, {"form_secret": secret}),
        ({"origin": "null"}, {"form_secret": secret}),
        ({}, {"form_secret": secret}),
        ({**own, "sec_fetch_site": "cross-site"}, {"form_secret": secret}),
        (own, {"form_secret": "guessed"}),
        (own, {}),
    ]:
        status, page, _ = inside.ask("POST", "/begin-release", form | more, **headers)
        assert status == 403, headers
        assert "nothing was spent" in page
    assert not (folder / "forged").exists()
    assert 'name="form_secret"' in inside.ask("GET", f"/review?{CHOSEN}")[1]


def test_what_writes_cannot_be_reached_by_an_address(inside):
    for path in ("/begin-release", "/begin-ledger", "/try/list"):
        assert inside.ask("GET", f"{path}?{CHOSEN}")[0] == 405


def test_another_name_for_this_machine_is_refused(inside):
    assert inside.ask("GET", "/", host="rebound.example")[0] == 421


def test_pages_load_nothing_from_elsewhere_are_not_kept_and_cannot_be_framed(inside):
    for path in ("/", "/columns?source=ratings.csv", f"/review?{CHOSEN}"):
        _, page, headers = inside.ask("GET", path)
        assert headers["cache-control"] == "no-store"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'self'" in policy
        assert "unsafe" not in policy
        for address in re.findall(r'(?:src|href|action)="([^"]*)"', page):
            assert address.startswith(("/", "data:", "#")), address


def test_looking_at_every_page_writes_nothing_and_spends_nothing(inside, folder, ledger):
    before = sorted(path.name for path in folder.rglob("*"))
    for path in ("/", "/columns?source=ratings.csv", f"/choose?{CHOSEN}&ledger={ledger}&dataset=films",
                 f"/review?{CHOSEN}&ledger={ledger}&dataset=films&out=looked"):  # fmt: skip
        assert inside.ask("GET", path)[0] == 200
    assert sorted(path.name for path in folder.rglob("*")) == before
    assert Ledger.open(str(folder / ledger)).budget("films").charges == 0


def test_a_review_says_how_often_odds_pass_the_factor_where_there_is_a_delta(inside):
    people, values = (inside.ask("GET", f"/review?{CHOSEN}{more}")[1] for more in ("&unit=user&delta=1e-6", ""))
    assert f"This holds except with a chance of at most {epsilon_text(chance_beyond(0.5, 1e-6), 2)}" in people
    assert "except with a chance" not in values


def test_a_budget_of_another_unit_is_called_that_before_anything_is_clicked(inside, ledger):
    page = inside.ask("GET", f"/review?{CHOSEN}&unit=user&ledger={ledger}&dataset=films")[1]
    assert "is a budget for the unit value: it will be refused" in page


def test_no_rating_is_on_any_page_not_even_where_it_is_refused(inside, folder):
    rows = [f"u{k},i{j},{(k * j) % 5 + 1}" for k in range(12) for j in range(10)]
    (folder / "odd.csv").write_text("user,item,rating\n" + "\n".join(rows) + "\nu1,i99,4.0625\nu2,i98,71717\n")
    for path in ("/", "/columns?source=odd.csv", f"/choose?{CHOSEN.replace('ratings.csv', 'odd.csv')}"):
        _, page, _ = inside.ask("GET", path)
        assert "4.0625" not in page
        assert "71717" not in page
    assert "the rating is not on the scale" in page
    (folder / "odd.csv").unlink()


def test_a_file_that_is_none_and_choices_that_are_none_are_refused_in_words(inside):
    page = inside.ask("GET", "/columns?source=nowhere.csv")[1]
    assert "nowhere.csv does not exist" in page
    assert "a delimiter is one punctuation mark" in inside.ask("GET", "/columns?source=ratings.csv&delimiter=ab")[1]
    page = inside.ask("GET", f"/choose?{CHOSEN.replace('1:5:1', '5:1:1')}")[1]
    assert 'role="alert"' in page
    assert inside.ask("GET", "/release?out=nowhere")[0] == 200
    assert inside.ask("GET", "/card?out=nowhere")[0] == 422
    assert inside.ask("GET", "/try?out=nowhere")[0] == 422
    assert inside.ask("GET", "/run?id=nothing")[0] == 404


def test_a_log_without_ratings_is_sent_to_the_command_that_takes_it(inside, folder):
    (folder / "log.csv").write_text("customer,article,price\nann,milk,x\nbob,bread,y\n")
    assert "dpsr release FILE --likes" in inside.ask("GET", "/columns?source=log.csv")[1]
    assert "--likes" not in inside.ask("GET", "/columns?source=ratings.csv")[1]


def test_arguments_stay_arguments(inside, folder):
    """A file whose name begins with a dash, quotes and dollars reach the command as they are, and no shell."""
    (folder / "--help").write_text((folder / "ratings.csv").read_text())
    page = inside.ask("GET", "/columns?source=--help")[1]
    assert "dpsr describe ./--help" in page
    (folder / "--help").unlink()
    page = inside.ask("GET", f"/review?{CHOSEN}&out=%24(touch%20pwned)%3B%20%27")[1]
    assert "&#39;$(touch pwned); &#39;&#34;&#39;&#34;&#39;&#39;" in page
    assert not (folder / "pwned").exists()


def test_a_table_of_a_database_is_picked_and_read_and_passwords_are_refused(inside, folder):
    with sqlite3.connect(folder / "shop.db") as database:
        database.execute('create table "rated things" (customer text, product text, "the stars" real)')
        rows = [(f"c{k}", f"p{j}", (k * j) % 5 + 1) for k in range(12) for j in range(10)]
        database.executemany('insert into "rated things" values (?, ?, ?)', rows)
    page = inside.ask("GET", "/columns?source=sqlite:///shop.db")[1]
    assert '<option value="rated things"' in page
    chosen = "source=sqlite:///shop.db&table=rated+things&user=customer&item=product&rating=the+stars"
    page = inside.ask("GET", f"/columns?{chosen}")[1]
    assert "120" in page
    assert "select customer, product, &#34;the stars&#34; from &#34;rated things&#34;" in page
    page = inside.ask("GET", "/columns?source=postgresql://me:hush@host/database")[1]
    assert ".pgpass" in page


def test_names_by_strangers_stay_text(inside, folder):
    bad = '"><script>alert(1)</script>'
    header = 'user,item,rating,"' + bad.replace('"', '""') + '"'
    (folder / "strange.csv").write_text(f"{header}\na,b,3,1\na,c,4,1\nb,b,3,1\nb,c,2,1\n")
    page = inside.ask("GET", "/columns?source=strange.csv")[1]
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    (folder / "strange.csv").unlink()


def test_the_card_is_served_so_that_it_can_reach_nothing_not_even_the_studio(inside, folder):
    ratings = realistic(0, n_users=60, n_items=40, n_ratings=900)
    DPSR(0.5).fit(ratings).save(folder / "carded")
    status, page, headers = inside.ask("GET", "/card?out=carded")
    assert status == 200
    assert "PRIVATE" in page
    assert "sandbox allow-scripts" in headers["content-security-policy"]
    assert "allow-same-origin" not in headers["content-security-policy"]
    card = folder / "carded" / "card.html"
    card.write_text(card.read_text().replace("PRIVATE", "private", 1))
    assert inside.ask("GET", "/card?out=carded")[0] == 422
    assert "was changed" in inside.ask("GET", "/release?out=carded")[1]
    write_manifest(folder / "carded")
    shown = inside.ask("GET", "/release?out=carded")[1]
    assert "card.html is not the page that the tables give" in shown
    assert "<iframe" not in shown, "a page that is not the tables' is not shown to whoever must sign"


def test_a_port_that_is_taken_is_refused_in_a_sentence(inside, folder):
    done = run(folder, "studio", "--port", str(inside.port))
    assert done.returncode == 2
    assert "Choose another port with --port" in " ".join(done.stderr.split())


def test_ctrl_c_stops_it_and_is_no_failure(tmp_path):
    """The program as it is typed, with processes that nobody forked."""
    (tmp_path / "ratings.csv").write_text("user,item,rating\na,b,3\na,c,4\nb,b,3\nb,c,2\n")
    with studio_in(tmp_path, program="dpsr studio") as found:
        found.enter()
        assert "dpsr describe ratings.csv" in found.ask("GET", "/columns?source=ratings.csv")[1]
        found.process.send_signal(2)
        assert found.process.wait(60) == 0
