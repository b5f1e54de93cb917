"""Tables in CSV, the numbers that they are stored as, and files of NumPy: tests/golden/tables.

The CSV files are written by Python's csv module, the expected numbers and the files of NumPy by
NumPy, in float64 until they are stored.
"""

import csv
import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "tables"
COLORS = ["blue", "green", "red"]
KINDS = ["cat", "dog", "eel"]
ROWS = 24


def make_rows(rng):
    rows = []
    for i in range(ROWS):
        rows.append({
            "id": f'no. {i}, "{KINDS[i % 3]}"' + ("\nsecond line" if i % 7 == 0 else ""),
            "size": float(np.round(rng.normal(100, 30), 2)),
            "color": COLORS[int(rng.integers(3))],
            "age": None if i in (3, 11) else int(rng.integers(1, 90)),
            "constant": 7,
            "is_new": bool(rng.integers(2)),
            "price": float(np.round(rng.normal(-5e4, 2e4), 1)),
            "kind": KINDS[int(rng.integers(3))],
        })
    return rows


def scaled(values, scale):
    if scale == "minmax":
        low, span = values.min(), values.max() - values.min()
    elif scale == "znorm":
        low, span = values.mean(), values.std()
    else:
        low, span = 0.0, 1.0
    return (values - low) / (span if span > 0 else 1.0)


def expected(rows, scale, missing):
    """The inputs without id, with the labels price and kind."""
    if missing == "skip":
        rows = [row for row in rows if row["age"] is not None]
    ages = [row["age"] for row in rows]
    fill = np.mean([age for age in ages if age is not None]) if missing == "mean" else 0.0
    ages = np.array([fill if age is None else age for age in ages], np.float64)
    column = lambda name: np.array([row[name] for row in rows], np.float64)
    one_hot = np.array([[row["color"] == color for color in COLORS] for row in rows], np.float64)
    data = np.column_stack([scaled(column("size"), scale), one_hot, scaled(ages, scale),
                            scaled(column("constant"), scale), scaled(column("is_new"), scale)])
    labels = np.column_stack([scaled(column("price"), scale),
                              [KINDS.index(row["kind"]) for row in rows]])
    return data.astype(np.float32), labels.astype(np.float32)


def write_tables(rng):
    rows = make_rows(rng)
    with open(FOLDER / "table.csv", "w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    for scale, missing in (("none", "zero"), ("minmax", "zero"), ("minmax", "mean"),
                           ("znorm", "mean"), ("znorm", "zero"), ("znorm", "skip")):
        data, labels = expected(rows, scale, missing)
        np.savez(FOLDER / f"{scale}_{missing}.npz", data=data, label=labels)


def write_arrays():
    """Element i of each array is i (modulo what the type holds), in row-major order."""
    ramp = lambda *shape: np.arange(np.prod(shape)).reshape(shape)
    np.save(FOLDER / "f4.npy", ramp(5, 3).astype("<f4") / 2)
    np.save(FOLDER / "f8_fortran.npy", np.asfortranarray(ramp(4, 3, 2).astype("<f8") / 2))
    np.save(FOLDER / "f2_big.npy", ramp(5, 3).astype(">f2"))
    np.save(FOLDER / "i8.npy", ramp(6) - 2)
    np.save(FOLDER / "i2_big.npy", (ramp(6) - 2).astype(">i2"))
    np.save(FOLDER / "bool.npy", ramp(6) % 2 == 1)
    np.save(FOLDER / "images.npy", (ramp(5, 6, 7, 3) % 251).astype(np.uint8))
    np.save(FOLDER / "scalar.npy", np.float32(3))
    np.save(FOLDER / "text.npy", np.array(["a", "bc"]))
    np.save(FOLDER / "records.npy", np.zeros(2, [("a", "f4"), ("b", "i4")]))
    np.save(FOLDER / "objects.npy", np.array([1, None], object))
    arrays = {"x_train": (ramp(5, 4, 2) % 251).astype(np.uint8), "y_train": ramp(5)[:, None] % 3}
    np.savez(FOLDER / "stored.npz", **arrays)
    np.savez_compressed(FOLDER / "packed.npz", **arrays)


def main():
    FOLDER.mkdir(exist_ok=True)
    write_tables(np.random.default_rng(7))
    write_arrays()


if __name__ == "__main__":
    main()
