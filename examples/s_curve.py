"""The paper's Poisson S-curve: simulate it, fit it, print R^2, draw true and inferred X, write a report.

``rflvm.demo`` has the steps; ``rflvm demo`` is the same as a command.
"""

from pathlib import Path

from rflvm.demo import draw_s_curve, fit_s_curve, report_s_curve

PICTURE = Path("output/s_curve.png")
REPORT = Path("output/report.html")

if __name__ == "__main__":
    model, truth = fit_s_curve()
    PICTURE.parent.mkdir(exist_ok=True)
    draw_s_curve(truth, model.embedding_, PICTURE)
    print(f"\npicture: {PICTURE}")
    report_s_curve(truth, model, REPORT)
    print(f"report:  {REPORT.resolve()}")
