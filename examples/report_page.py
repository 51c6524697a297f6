"""Write a report page about a result, in one file to open in a browser or to share."""

import crowdwise as cw

crowd = cw.simulate.crowd("groups", tasks=200, workers=20, classes=3, per_task=5, seed=6)
result = cw.aggregate(crowd.answers)

page = result.report("report.html", models=("majority-vote", "dawid-skene"))
print(f"{page}: {page.stat().st_size // 1000} kB, self-contained")

# the same figures as plain values
print(cw.agreement(crowd.answers))
print(result.workers.filter(result.workers["flags"] != "").select("worker", "flags", "reasons"))
print(result.tasks.sort("entropy", descending=True).head(3))
