"""Charts on their own: workers, confusion matrix, classes, tasks, cost; saved as SVG, PNG and PDF."""

import crowdwise as cw

crowd = cw.simulate.crowd("hammer-spammer", tasks=200, workers=40, classes=3, per_task=5, seed=6)
result = cw.aggregate(crowd.answers)

try:
    chart = result.plot("workers", top=15)
except cw.errors.MissingError as missing:
    raise SystemExit(str(missing)) from None
print(chart)
print(chart.description)
print(chart.data.head(3))  # the numbers that are drawn
print(f"wrote {chart.save('workers.svg')}")

# the flagged workers only, and the confusion matrix of the first of them
flagged = result.workers.filter(result.workers["flags"] != "").sort("rank")["worker"]
result.plot("workers", workers=flagged).save("flagged.pdf")
result.plot("confusion", worker=flagged[0], values="counts").save("confusion.png", dpi=150)

# classes, tasks, and what more answers would bring
for name in ("classes", "tasks", "cost"):
    print(f"wrote {result.plot(name).save(f'{name}.png')}")

# the figure is one of matplotlib: change it before saving
chart = result.plot("tasks")
chart.figure.axes[0].set_ylabel("number of labels")
chart.save("tasks.pdf")
