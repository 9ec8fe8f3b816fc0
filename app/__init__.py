"""The app: `streamlit run app/main.py`. Pages draw what `state` hands them; `charts` is pure."""
