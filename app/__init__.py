"""The app: `streamlit run app/main.py`.

`shell.py` lists the pages and draws what is around them. Each page has a folder: `page.py` draws it, `compute.py` has
its cached results and figures. `core` is what several pages share; no page imports from another.
"""
