/** A straight line through points. */
export interface Trend {
  /** The growth per unit of x. */
  readonly slope: number;
  /** The standard error of the slope: the true slope is within twice that in 95 of 100 cases. */
  readonly error: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Fits a line by ordinary least squares. Returns undefined for fewer than three points, which have no error. */
export function fitTrend(points: readonly Point[]): Trend | undefined {
  const { length } = points;
  if (length < 3) return undefined;
  const meanX = sum(points.map(({ x }) => x)) / length;
  const meanY = sum(points.map(({ y }) => y)) / length;
  const spread = sum(points.map(({ x }) => (x - meanX) ** 2));
  if (spread === 0) return undefined;
  const slope = sum(points.map(({ x, y }) => (x - meanX) * (y - meanY))) / spread;
  const rest = sum(points.map(({ x, y }) => (y - meanY - slope * (x - meanX)) ** 2));
  return { slope, error: Math.sqrt(rest / (length - 2) / spread) };
}

/**
 * Returns the lowest point of each of `stretches` sections of equal length. Uncollected garbage adds to the values, so the
 * lowest is closest to the live data.
 */
export function lowest(points: readonly Point[], stretches: number): readonly Point[] {
  const first = points[0]?.x ?? 0;
  const length = ((points.at(-1)?.x ?? 0) - first) / stretches;
  const groups = Map.groupBy(points, ({ x }) =>
    Math.min(stretches - 1, Math.floor((x - first) / length)),
  );
  return [...groups.values()].flatMap((group) => group.toSorted((a, b) => a.y - b.y).slice(0, 1));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
