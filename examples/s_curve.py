"""The paper's Poisson S-curve: simulate it, fit it, print R^2, draw true and inferred X, write a report."""

from pathlib import Path

from rflvm.demo import draw_s_curve, fit_s_curve
from rflvm.report import write_report

PICTURE = Path("output/s_curve.png")
REPORT = Path("output/report.html")

if __name__ == "__main__":
    model, truth = fit_s_curve()
    PICTURE.parent.mkdir(exist_ok=True)
    draw_s_curve(truth, model.embedding_, PICTURE)
    print(f"\npicture: {PICTURE}")
    write_report(model, REPORT, colours={"position along the curve": truth.t}, title="Poisson S-curve")
    print(f"report:  {REPORT.resolve()}")
