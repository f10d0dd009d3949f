"""The paper's Poisson S-curve: simulate it, fit it, print R^2, draw true and inferred X (``rflvm.demo`` does it)."""

from pathlib import Path

from rflvm.demo import draw_s_curve, fit_s_curve

PICTURE = Path("output/s_curve.png")

if __name__ == "__main__":
    model, truth = fit_s_curve()
    PICTURE.parent.mkdir(exist_ok=True)
    draw_s_curve(truth, model.embedding_, PICTURE)
    print(f"\npicture: {PICTURE}")
