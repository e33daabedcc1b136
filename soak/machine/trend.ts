/** A straight line through points. */
export interface Trend {
  /** Growth for each unit of x. */
  readonly slope: number;
  /** Standard error of the slope: twice that on either side holds it in 95 of 100 cases. */
  readonly error: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Ordinary least squares. Undefined for fewer than three points, which have no error. */
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
 * The least point of each of so many stretches of equal length. What a collector has not yet swept lies above, so the
 * least is nearest to what is really held.
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
