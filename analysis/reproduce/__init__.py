"""The paper's comparisons, trained and measured again: one literal listing of them, and what runs it.

    `comparisons` -> `trainings` + `datasets` -> `runner`: a folder per training -> `results`: CSV -> `pages`: Markdown

A comparison says which systems it trains, what numbers the paper reports for them, and what it claims. A training of
one system runs and is measured once, for all comparisons that include it.

    plan = plan_trainings(["main"], data=Path("data"), out=Path("runs/paper"))
    run(plan)
    report(plan)
"""

from analysis.reproduce.bootstrapped_scores import Bootstrap
from analysis.reproduce.training_plan import TrainingPlan, plan_trainings, report, run

__all__ = ["Bootstrap", "TrainingPlan", "plan_trainings", "report", "run"]
