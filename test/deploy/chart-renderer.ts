import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const RENDERER = join(import.meta.dirname, "render-chart.go");
const DEBIAN_GOPATH = "/usr/share/gocode";
/** Milliseconds that making a renderer may take: Go compiles its own libraries the first time. */
export const RENDERER_TIMEOUT = 300_000;
/** A helm that was built from source alone takes the cluster for 1.20, and the chart refuses that. */
const KUBERNETES = "1.30.0";

const run = promisify(execFile);

/** Debian's packages for a machine without helm, and what shows that each is there. */
const PACKAGES: readonly (readonly [string, () => boolean])[] = [
  ["golang-go", () => starts("go")],
  ["golang-github-masterminds-sprig-dev", () => hasSource("github.com/Masterminds/sprig")],
  ["golang-k8s-sigs-yaml-dev", () => hasSource("sigs.k8s.io/yaml")],
];

export interface ChartRenderer {
  /** The manifests, as one text. The release is `orders` in the namespace `shop`. Rejects with what the templates say. */
  render(chart: string, values: object): Promise<string>;
}

/** Why no chart can be rendered here; undefined when one can. */
export function whyNoChart(): string | undefined {
  if (starts("helm")) return undefined;
  const missing = PACKAGES.filter(([, isThere]) => !isThere()).map(([name]) => name);
  return missing.length === 0 ? undefined : `there is neither helm nor ${missing.join(" and ")}`;
}

/**
 * Renders with helm, or where there is none with what it is made of (render-chart.go).
 * @param scratch a directory of its own.
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
      // JSON is YAML, too.
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
