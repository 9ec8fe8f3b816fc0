"""Tables -> plotly figures. Pure: no Streamlit, no model, no files; use them in a notebook as they are."""
