"""Write a report page about a result, in one file to open in a browser or to share."""

import crowdwise as cw

crowd = cw.simulate.crowd("groups", tasks=200, workers=20, classes=3, per_task=5, seed=6)
result = cw.aggregate(crowd.answers)

others = cw.compare(crowd.answers, ["majority-vote", "dawid-skene"], folds=0, against=result)
page = result.report("report.html", comparison=others, cost=cw.cost_curve(result))
print(f"{page}: {page.stat().st_size // 1000} kB, nothing else is needed to read it")

# the same figures as plain values
print(cw.agreement(crowd.answers))
print(result.workers.filter(result.workers["flags"] != "").select("worker", "flags", "reasons"))
print(result.tasks.sort("entropy", descending=True).head(3))
