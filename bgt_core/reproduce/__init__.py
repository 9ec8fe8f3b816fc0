"""The paper's comparisons, trained and measured again: one literal listing of tables, and what runs it.

    `tables` -> `cells` + `evaluated` data -> `runner`: a folder a cell -> `results`: CSV -> `report`: Markdown

A table says which systems it compares, what the paper found, and what the paper claims. A cell is one training of one
system: it is trained and measured once, for all tables that name it.
"""
