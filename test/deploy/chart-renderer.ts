import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const RENDERER = join(import.meta.dirname, "render-chart.go");
const DEBIAN_GOPATH = "/usr/share/gocode";
/** Timeout in milliseconds for building a renderer: the first time, Go compiles its standard library. */
export const RENDERER_TIMEOUT = 300_000;
/** A helm built from plain source assumes Kubernetes 1.20, which the chart refuses. */
const KUBERNETES = "1.30.0";

const run = promisify(execFile);

/** Debian packages for a machine without helm, and a check for each whether it is installed. */
const PACKAGES: readonly (readonly [string, () => boolean])[] = [
  ["golang-go", () => starts("go")],
  ["golang-github-masterminds-sprig-dev", () => hasSource("github.com/Masterminds/sprig")],
  ["golang-k8s-sigs-yaml-dev", () => hasSource("sigs.k8s.io/yaml")],
];

export interface ChartRenderer {
  /**
   * Returns the manifests as one text; the release is `orders` in the namespace `shop`. Rejects with the templates'
   * error.
   */
  render(chart: string, values: object): Promise<string>;
}

/** Returns why charts cannot be rendered on this machine; undefined if they can. */
export function whyNoChart(): string | undefined {
  if (starts("helm")) return undefined;
  const missing = PACKAGES.filter(([, isThere]) => !isThere()).map(([name]) => name);
  return missing.length === 0 ? undefined : `there is neither helm nor ${missing.join(" and ")}`;
}

/**
 * Renders with helm, or, if it is not installed, with the libraries it consists of (render-chart.go).
 * @param scratch a new directory.
 */
export async function chartRenderer(scratch: string): Promise<ChartRenderer> {
  const withHelm = starts("helm");
  const program = withHelm ? "helm" : join(scratch, "render-chart");
  if (!withHelm) {
    const env = { ...process.env, GO111MODULE: "off", GOPATH: DEBIAN_GOPATH, GOFLAGS: "" };
    await run("go", ["build", "-o", program, RENDERER], { env });
  }
  return {
    async render(chart, values) {
      const file = join(scratch, "values.yaml");
      // JSON is valid YAML.
      await writeFile(file, JSON.stringify(values));
      if (withHelm) {
        const where = ["--namespace", "shop", "--kube-version", KUBERNETES];
        const args = ["template", "orders", chart, ...where, "--values", file];
        return (await run(program, args)).stdout;
      }
      const { stdout } = await run(program, [chart, file]);
      return Object.entries(JSON.parse(stdout) as Record<string, string>)
        .filter(([name]) => name.endsWith(".yaml"))
        .map(([, text]) => text)
        .join("\n---\n");
    },
  };
}

function starts(program: string): boolean {
  return spawnSync(program, ["version"], { stdio: "ignore" }).error === undefined;
}

function hasSource(path: string): boolean {
  return existsSync(join(DEBIAN_GOPATH, "src", path));
}
