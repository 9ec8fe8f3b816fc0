"""Slices: selections with names, kept in the link."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from app.core.address import MAX_ROWS, as_ranges, in_ranges

SLICES = "slice"  # a parameter of the address, once for each: NAME:RANGES


def show(ids: Sequence[str], chosen: Sequence[str], choose: Callable[[Sequence[str]], object]) -> None:
    """Offer the slices of these rows, and to keep what is selected as one; `choose` selects rows."""
    kept = of_session(ids)
    with st.popover(f"Slices ({len(kept)})" if kept else "Slices"):
        if kept:
            st.pills("Select", list(kept), key="shown_slice", on_change=choose_shown, args=(kept, choose))
            st.button("Remove it", on_click=remove, disabled=not shown(kept))
        st.markdown("Keep the selected sentences under a name." + " Select some first." * (not chosen))
        name = st.text_input("Name of the selection", key="slice_name", max_chars=40).strip()
        st.button("Keep", on_click=keep, args=(name, chosen), disabled=not (name and chosen))
        st.caption("The link keeps slices unless it gets too long. An export holds the selected rows alone.")


def of_session(ids: Sequence[str]) -> dict[str, list[str]]:
    """The slices of this session by name, at first those of the link; rows that are not among these are left out."""
    if SLICES not in st.session_state:
        parts = (text.rpartition(":") for text in st.query_params.get_all(SLICES))
        linked = {name: in_ranges(ranges, ids) for name, _, ranges in parts if name}
        st.session_state[SLICES] = {name: rows for name, rows in linked.items() if rows}
    return st.session_state[SLICES]


def shown(kept: dict[str, list[str]]) -> list[str]:
    """The rows of the slice that is chosen."""
    return kept.get(st.session_state.get("shown_slice") or "", [])


def choose_shown(kept: dict[str, list[str]], choose: Callable[[Sequence[str]], object]) -> None:
    """Select the rows of the slice that is chosen."""
    choose(shown(kept))


def keep(name: str, chosen: Sequence[str]) -> None:
    """Keep the selection under a name; one of that name is replaced."""
    change({**st.session_state[SLICES], name: list(chosen)})
    st.session_state["slice_name"] = ""


def remove() -> None:
    """Remove the slice that is chosen."""
    change({name: rows for name, rows in st.session_state[SLICES].items() if name != st.session_state["shown_slice"]})


def change(slices: dict[str, list[str]]) -> None:
    """These are the slices of the session, and of the address as far as they fit."""
    st.session_state[SLICES] = slices
    texts, length = [], 0
    for name, rows in slices.items():
        texts.append(f"{name}:{as_ranges(rows)}")
        length += len(texts[-1])
        if length > MAX_ROWS:
            texts.pop()
            break
    st.query_params[SLICES] = texts


def forget() -> None:
    """Drop all slices: they are of other sentences."""
    change({})
