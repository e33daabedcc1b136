/** The figures that are measured, in the order of the columns. */
export const FIGURES = {
  cpu: { title: "CPU µs/request", digits: 1 },
  rate: { title: "requests/s", digits: 0 },
  p50: { title: "p50 ms", digits: 2 },
  p99: { title: "p99 ms", digits: 2 },
  p999: { title: "p99.9 ms", digits: 2 },
  cpuPerGb: { title: "CPU s/GB", digits: 2 },
  megabytesPerSecond: { title: "MB/s", digits: 0 },
  resident: { title: "resident MB", digits: 1 },
  perConnection: { title: "KB/connection", digits: 1 },
  perStream: { title: "KB/stream", digits: 1 },
  idle: { title: "CPU ms/s", digits: 2 },
  ready: { title: "ready ms", digits: 0 },
  installed: { title: "installed MB", digits: 1 },
} as const;

export type FigureName = keyof typeof FIGURES;

export const FIGURE_NAMES = Object.keys(FIGURES).filter(isFigureName);

function isFigureName(name: string): name is FigureName {
  return name in FIGURES;
}
