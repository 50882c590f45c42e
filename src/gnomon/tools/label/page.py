"""The labelling page as HTML, and what it is told when the map has moved."""

import numpy as np

from gnomon.tools.label.learning import Progress
from gnomon.tools.label.session import Session
from gnomon.tools.web.assets import (
    COLOURS,
    NO_LEVEL,
    as_script,
    pack,
    policy,
    rendered,
    script,
    style,
)

# After the drawing, each of which needs those before it.
SCRIPTS = ("talk.js", "card.js", "progress.js", "keys.js")

# What a person should know of a model that was asked for by its name.
NOTES = {"BSDR": "The map is that of BSDR, which learns from labelled rows alone."}


def render(session: Session) -> tuple[str, str]:
    """The page, and the policy that lets its own script and style run and nothing else."""
    own_style, own_script = style("style.css", __package__), script(SCRIPTS, __package__)
    html = rendered(
        "page.html",
        __package__,
        style=own_style,
        script=own_script,
        payload=as_script(payload(session)),
        title=f"{session.rows.name}: {session.rows.target}",
        has_text=session.rows.texts is not None,
        model_note=NOTES.get(session.learner.model, ""),
    )
    own = ("img-src 'self' data:", "connect-src 'self'", "frame-ancestors 'none'")
    return html, policy(own_style, own_script, *own)


def payload(session: Session) -> dict:
    """What the drawing starts from, in the form that the report has too, and the session."""
    rows, news = session.rows, news_of_state(session)
    everything = session.everything()
    labels = everything.pop("labels")
    return {
        "name": rows.name,
        "n": len(rows.ids),
        "q": 2,
        "axes": ["z1", "z2"],
        "row_name": "row",
        "none_name": "not predicted yet",
        "ids": rows.ids,
        "z": news["z"],
        "covariance": {"shared": False, "values": news["covariance"]},
        "labelled": pack(labels >= 0, "u1"),
        "palette": COLOURS,
        "columns": [
            {
                "name": rows.target,
                "kind": "classes",
                "levels": everything["classes"],
                "values": news["predicted"],
            },
            {
                "name": "probability of the class",
                "kind": "number",
                "levels": None,
                "values": news["certainty"],
            },
        ],
        "columns_left_out": 0,
        "own": 1,
        "predicted": True,
        "loadings": None,
        "labels": pack(labels, "<i4"),
        "session": everything | {"folder": str(session.folder), "text": rows.texts is not None},
        "news": {key: news[key] for key in ("version", "queue", "slips", "progress", "history")},
    }


def news_of_state(session: Session) -> dict:
    """The map, the queue and the progress as they are now."""
    state, record = session.state, session.record
    n = len(state.probabilities)
    predicted, certainty = np.full(n, NO_LEVEL), np.full(n, np.nan)
    if state.predicts:
        predicted, certainty = state.probabilities.argmax(axis=1), state.probabilities.max(axis=1)
    passed = (record.labels >= 0) | record.skipped
    variances = np.zeros((n, 3))
    variances[:, [0, 2]] = np.asarray(state.sd) ** 2
    return {
        "version": state.version,
        "z": [pack(state.coordinates[:, j], "<f4") for j in range(2)],
        "covariance": pack(variances, "<f4"),
        "predicted": pack(predicted, "<u2"),
        "certainty": pack(certainty, "<f4"),
        "queue": [_suggestion(s) for s in state.queue if not passed[s.row]],
        "moved": state.n_moved,
    } | news_of_progress(session)


def news_of_progress(session: Session) -> dict:
    """The accuracy so far, how it came about, and labels that may be slips."""
    progress, record = session.progress, session.record
    found = () if progress is None else progress.surprising
    slips = [s for s in found if record.labels[s.row] == s.given and not record.confirmed[s.row]]
    return {
        "progress": None if progress is None else _figures(progress),
        "history": [list(values) for values in session.history],
        "slips": [
            {"row": int(s.row), "given": int(s.given), "found": int(s.found), "p": s.probability}
            for s in slips
        ],
    }


def _suggestion(suggestion) -> dict:
    likely = [[str(name), round(p, 4)] for name, p in suggestion.classes_likely]
    return {"row": int(suggestion.row), "reason": suggestion.reason, "likely": likely}


def _figures(progress: Progress) -> dict:
    """The fields of a progress that a page shows; what is not known is None."""
    values = {key: getattr(progress, key) for key in Progress._fields if key != "surprising"}
    known = {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in values.items()}
    return known | {"few": list(progress.few)}
