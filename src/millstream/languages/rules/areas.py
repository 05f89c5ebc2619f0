"""Areas and points of a domain: outlines as WKT or from a GeoJSON file, read by shapely."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from millstream.connectors.elsewhere.extras import optional
from millstream.languages.rules.domain import Area
from millstream.languages.rules.measured import Edge

#: A point is held against every edge, so more of them are simplified by whoever draws them.
MOST_EDGES = 2_000


class AreaError(Exception):
    """What is wrong with an outline, and what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def area_of_wkt(text: str) -> Area:
    shapely = optional("shapely", "areas")
    try:
        shape = shapely.from_wkt(text)
    except shapely.errors.ShapelyError as error:
        message = str(error).partition("\n")[0]
        hint = 'write wkt = "POLYGON ((4.0 51.9, 4.1 51.9, 4.1 52.0, 4.0 51.9))"'
        raise AreaError(f"this is no outline: {message}", hint) from None
    return _area(shapely, shape)


def area_of_file(path: Path, name: str | None) -> Area:
    """The feature of a GeoJSON file whose property `name` it is, or the only one."""
    shapely = optional("shapely", "areas")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise AreaError(f"cannot read {path.name}") from None
    except ValueError:
        raise AreaError(f"{path.name} is no GeoJSON") from None
    features = list(_features(document))
    named = [f for f in features if name is None or _name(f) == name]
    if len(named) != 1:
        known = ", ".join(sorted(filter(None, map(_name, features)))) or "none that has a name"
        many = f"{len(named) or 'no'} areas" + (f' "{name}"' if name else "")
        raise AreaError(f"{path.name} has {many}", f'say which: name = "...": {known}')
    try:
        shape = shapely.geometry.shape(named[0].get("geometry", named[0]))
    except (shapely.errors.ShapelyError, AttributeError, KeyError, TypeError, ValueError):
        raise AreaError(f"{path.name} has no outline there") from None
    return _area(shapely, shape)


def _features(document: Any) -> Iterator[dict[str, Any]]:
    if isinstance(document, dict):
        inner = document.get("features")
        if isinstance(inner, list):
            yield from (f for f in inner if isinstance(f, dict))
        else:
            yield document


def _name(feature: dict[str, Any]) -> str | None:
    properties = feature.get("properties")
    name = properties.get("name") if isinstance(properties, dict) else None
    return name if isinstance(name, str) else None


def _area(shapely: Any, shape: Any) -> Area:
    if shape.geom_type not in ("Polygon", "MultiPolygon") or shape.is_empty:
        raise AreaError(f"an area is a POLYGON or a MULTIPOLYGON, and this is a {shape.geom_type}")
    if not shapely.is_valid(shape):
        raise AreaError(f"the outline is wrong: {shapely.is_valid_reason(shape)}",
                        "an outline must not cross itself")  # fmt: skip
    edges = tuple(_edges(shape))
    if len(edges) > MOST_EDGES:
        raise AreaError(f"the outline has {len(edges)} edges, more than {MOST_EDGES}",
                        "simplify it")  # fmt: skip
    return Area(edges)


def _edges(shape: Any) -> Iterator[Edge]:
    """All edges of all rings; those from left to right cross no line to the right."""
    for polygon in getattr(shape, "geoms", [shape]):
        for ring in (polygon.exterior, *polygon.interiors):
            corners = [(float(c[0]), float(c[1])) for c in ring.coords]
            for (x, y), (next_x, next_y) in itertools.pairwise(corners):
                if y != next_y:
                    yield x, y, next_x, next_y
