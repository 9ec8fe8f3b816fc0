"""The app: `streamlit run app/main.py`.

`shell.py` lists the pages and draws the parts around a page. Each page has a folder: `page.py` draws it, `compute.py`
computes its results and figures. `core` has the code that several pages share; pages do not import from each other.
"""
