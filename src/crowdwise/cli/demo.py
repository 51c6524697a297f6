"""The demonstration: a simulated crowd with spammers, its answers, and the true labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..aggregation import aggregate
from ..comparison import score
from ..errors import for_shell
from ..io import read
from ..report import summarise
from ..result.outputs import Outputs
from ..simulate import crowd
from .fits import quick_page
from .job import write_result
from .say import table

ANSWERS, TRUTH = "answers.csv", "truth.csv"


def run(out: Path, seed: int) -> None:
    """Run `crowdwise demo`."""
    made = crowd("hammer-spammer", tasks=300, workers=30, classes=3, per_task=6, seed=seed, spammers=0.5, accuracy=0.8)
    with Outputs(out) as outputs:
        made.save(outputs.new)
        file = outputs.new / ANSWERS
        answers, gold = read(file), read(file, gold=made.truth).gold
        answers = answers.replaced(intake=replace(answers.intake, path=str(out / ANSWERS)))
        result = aggregate(answers)
        write_result(outputs, result, unlisted=(ANSWERS, TRUTH), **quick_page(result))
    vote = aggregate(answers, "majority-vote")
    print(f"A simulated crowd: {answers.n_workers} workers, half of them spammers, gave {answers.n_answers} answers.")
    for name, fit in (("majority vote", vote), (f"crowdwise ({result.model.name})", result)):
        print(f"  accuracy of {name}: {score(fit.posterior, gold)[0]:.1%}")
    for line in summarise(result, for_shell).lines():
        print(f"  {line}")
    print("The best and the worst workers, with their true skill:")
    truth = dict(zip(made.workers["worker"], made.workers["skill"], strict=True))
    ranked = result.workers.sort("low", descending=True)
    shown = ranked.head(3).rows(named=True) + ranked.tail(3).rows(named=True)
    columns = ["worker", "answers", "skill", "low", "high", "flags"]
    table([*columns, "true skill"], [[*(w[c] for c in columns), truth[w["worker"]]] for w in shown])
    print(
        f"Open {out}/report.html. The same folder has labels.csv, workers.csv and tasks.csv, estimated from "
        "answers.csv, and the true labels in truth.csv."
    )
    print(f"Next: crowdwise inspect {out}/answers.csv; crowdwise compare {out}/answers.csv --gold {out}/truth.csv")
