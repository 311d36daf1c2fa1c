"""Every claim of the ledger against its recomputation, and proof that faults show."""

import csv
from functools import cache

import pytest

import tests.claims.recompute  # noqa: F401 - fills the registry
from tests.claims import ledger
from tests.claims.faults import faults
from tests.claims.ledger import Row, disagreements, read, recompute, recomputes

ROWS = {row.id: row for row in read()}
COMPUTED = [row for row in ROWS.values() if row.value]


@cache
def recomputed(row_id):
    return recompute(ROWS[row_id])


def test_the_ledger_is_complete_and_well_formed():
    assert faults(read()) == []


@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: row.id)
def test_a_claim_is_recomputed(row):
    assert disagreements(row, recomputed(row.id)) == []


@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: row.id)
def test_any_one_changed_digit_is_noticed(row):
    for place, digit in enumerate(row.value):
        if digit.isdigit():
            for other in set("0123456789") - {digit}:
                value = row.value[:place] + other + row.value[place + 1 :]
                if row._replace(value=value).values != row.values:
                    assert disagreements(row._replace(value=value), recomputed(row.id))


@pytest.fixture
def changed(tmp_path):
    """A copy of the ledger in which one row has other fields."""

    def change(row_id, **fields):
        path = tmp_path / "ledger.csv"
        with ledger.LEDGER.open(encoding="utf8", newline="") as file:
            header, *rows = csv.reader(file)
        rows = [
            list(Row(*row)._replace(**fields)) if row[0] == row_id else row
            for row in rows
        ]
        with path.open("w", encoding="utf8", newline="") as file:
            csv.writer(file).writerows([header, *rows])
        return read(path)

    return change


@pytest.mark.parametrize(
    ("row_id", "old", "new"),
    [
        ("gvae.logev", "-1.602092647785", "-1.602092647786"),
        ("rev4.t50.cx0", "0.037703866786", "0.037703866787"),
        ("fwd.lin.abar1000", "4.04e-5", "4.05e-5"),
        ("elbo2.pp.q10", "-1.203972804326", "-1.203972804325"),
        ("fwd.lin.half", "260", "261"),
        ("elbo.law.identity", "0; 0", "0; 1"),
        ("abl.cond.mse.mean", "0.42971", "0.42972"),
        ("abl.proto.seeds", "6054", "6055"),
        ("fwd.fact.ddpm", "2020", "2021"),
        ("samp.heights.z+0.5", "173.5", "173.6"),
        ("gauss.demo.10steps", "0.807044955315", "0.807044955316"),
        ("rep.extra.variance", "21.75", "21.76"),
        ("ae.pp.box", "420.656537413", "420.656537414"),
        ("dlm.law.neglogbias", "0.988211249987", "0.988211249988"),
        ("vae.b0.1.klavg", "7.45", "7.46"),
        ("cfg.dispute.tilt", "0.015358931169", "0.015358931168"),
        ("ddim.law.rotation", "0.691718031533", "0.691718031534"),
        ("sc.law.peaks", "23", "24"),
        ("cfg.toy.w5", "0.0013", "0.0014"),
    ],
)
def test_a_digit_changed_in_the_file_is_noticed(changed, row_id, old, new):
    value = ROWS[row_id].value
    assert old in value
    rows = {row.id: row for row in changed(row_id, value=value.replace(old, new))}
    assert disagreements(rows[row_id], recompute(rows[row_id]))
    assert disagreements(ROWS[row_id], recompute(ROWS[row_id])) == []


@pytest.mark.parametrize(
    ("row_id", "fields", "complaint"),
    [
        ("elbo2.px", {"id": "elbo2.new"}, "elbo2.new: no recomputation"),
        ("elbo2.px", {"id": "elbo2.new"}, "elbo2.px: a recomputation without a row"),
        ("elbo2.px", {"id": "elbo2.logpx"}, "elbo2.logpx: 2 rows of one id"),
        ("elbo2.px", {"value": "", "tolerance": ""}, "but without a value"),
        ("elbo2.px", {"tolerance": ""}, "1 values, 0 tolerances"),
        ("elbo2.px", {"tolerance": "0"}, "tolerance 0 is not > 0"),
        ("elbo2.logpx", {"value": "-0.91629"}, "-0.91629 has more digits than"),
        (
            "elbo2.pp.gap",
            {"value": "-1.5; 0.4000000000000"},
            "0.4000000000000 has more",
        ),
        ("elbo2.logpx", {"tolerance": "1e-3"}, "-0.9163 has more digits than"),
        ("elbo2.px", {"kind": "guess"}, "kind 'guess' is none of"),
        ("elbo2.px", {"source": "hearsay"}, "source 'hearsay': no such key"),
        ("elbo2.px", {"quantity": ""}, "no quantity"),
        ("elbo2.px", {"how": "by eye"}, "'by eye' is no known form"),
        ("elbo2.px", {"how": "genaudit.latent.magic"}, "magic does not exist"),
        (
            "elbo2.px",
            {"how": "genaudit.divergence.kl_finite"},
            "not what recomputes it",
        ),
        ("elbo2.px", {"how": "plain arithmetic"}, "but it uses FiniteModel"),
        ("elbo.tab.best", {"how": "plain arithmetic"}, "a fact without a citation"),
        (
            "elbo.tab.tells",
            {"how": "cites nobody1900"},
            "no such key in references.bib",
        ),
        ("elbo.tab.best", {"value": "3", "tolerance": "0.5"}, "no recomputation"),
        (
            "abl.cond.mse.mean",
            {"how": "stored output of chapter time_conditioning, cell setup"},
            "no recomputation reads an output of stored output of chapter",
        ),
    ],
)
def test_a_fault_of_the_ledger_is_named(changed, row_id, fields, complaint):
    assert any(complaint in fault for fault in faults(changed(row_id, **fields)))


def test_two_recomputations_of_one_row_are_named(monkeypatch):
    monkeypatch.setattr(ledger, "RECOMPUTATIONS", dict(ledger.RECOMPUTATIONS))
    recomputes("elbo2.p*")(lambda prior, likelihood: 0.4)
    assert "elbo2.px: 2 recomputations" in faults(read())


@pytest.mark.parametrize(
    ("row_id", "old", "new"),
    [
        ("elbo2.px", "0.6", "0.7"),
        ("fwd4.t10.abar", "t=10", "t=11"),
        ("gan.sat.-2.ns", "-2.0", "-2.1"),
        ("rev.x", "z=-0.3", "z=-0.4"),
        ("abl.cond.mse.mean", "with time", "without time"),
        ("samp.twohumps", "1.4", "1.42"),
        ("gauss.pp.twosteps", "steps=2", "steps=3"),
        ("rep.neg.dLdsig", "noise=-0.4", "noise=-0.5"),
        ("vae.pp.2d", "2.0", "2.1"),
        ("dlm.law.neglogbias", "0.6", "0.7"),
        ("ae.random.bad4", "variational", "plain"),
        ("vae.b0.1.klavg", "0.1", "1"),
        ("cfg.dispute.tilt", "scale=3.0", "scale=2.0"),
        ("ddim.law.rotation", "50.0", "49.0"),
        ("sc.law.peaks", "60.0", "45.0"),
        ("ddim.toy.ddim50", "steps=50", "steps=25"),
        ("den.demo.abar095", "0.95", "0.9"),
    ],
)
def test_inputs_reach_the_recomputation(row_id, old, new):
    row = ROWS[row_id]._replace(inputs=ROWS[row_id].inputs.replace(old, new))
    assert row != ROWS[row_id]
    assert disagreements(row, recompute(row))


@pytest.mark.parametrize(
    ("row_id", "chapter", "old", "new"),
    [
        ("vae.b0.1.klavg", "vae", "7.45", "7.46"),
        ("ae.random.bad65", "autoencoder", "1,340", "1,341"),
        ("vae.demo.12faces", "vae", "36 pictures", "33 pictures"),
        ("abl.cond.mse.mean", "time_conditioning", "0.42971", "0.42972"),
        ("ddim.toy.ddim50", "ddim", "0.8840", "0.8841"),
        ("ddim.toy.n400", "ddim", "of 2,000 starts", "of 2,001 starts"),
        ("den.demo.abar095", "denoiser", "143 lie on", "144 lie on"),
        ("cfg.toy.w5", "guidance", "0.0013", "0.0014"),
    ],
)
def test_a_number_changed_in_a_chapter_is_noticed(
    tmp_path, monkeypatch, row_id, chapter, old, new
):
    stored = (ledger.ROOT / "chapters" / f"{chapter}.ipynb").read_text(encoding="utf8")
    assert old in stored
    copy = tmp_path / "chapters" / f"{chapter}.ipynb"
    copy.parent.mkdir()
    copy.write_text(stored.replace(old, new), encoding="utf8")
    monkeypatch.setattr(ledger, "ROOT", tmp_path)
    assert disagreements(ROWS[row_id], recompute(ROWS[row_id]))


def test_columns_out_of_order_are_refused(tmp_path):
    path = tmp_path / "ledger.csv"
    path.write_text("id,value\nelbo2.px,0.4\n")
    with pytest.raises(AssertionError, match="columns"):
        read(path)
