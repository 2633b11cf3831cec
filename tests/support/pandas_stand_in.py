"""What `to_pandas` calls of pandas, for an environment that lacks it."""

import types


class Series(list):
    """Values with the type that was asked for."""

    def __init__(self, values, dtype=None):
        super().__init__(values)
        self.dtype = dtype


class DataFrame:
    """Columns of one length, by name."""

    def __init__(self, columns):
        assert len({len(values) for values in columns.values()}) == 1
        self._columns = dict(columns)

    @property
    def columns(self):
        return list(self._columns)

    @property
    def dtypes(self):
        return {name: values.dtype for name, values in self._columns.items()}

    def __getitem__(self, name):
        if isinstance(name, list):
            return DataFrame({each: self._columns[each] for each in name})
        return self._columns[name]

    def __len__(self):
        return len(next(iter(self._columns.values())))


def put(monkeypatch):
    """Let `import pandas` find the stand-in."""
    module = types.ModuleType("pandas")
    module.Series, module.DataFrame = Series, DataFrame
    monkeypatch.setitem(__import__("sys").modules, "pandas", module)
