"""The app: `streamlit run app/main.py`.

Each page has a folder: `page.py` draws it (parts of a long page have files of their own), `compute.py` has its cached
results, `chart.py` its figures. `core` is what several pages share; no page imports from another. `main.py` lists the
pages: a new one is a folder and an `st.Page` there.
"""
