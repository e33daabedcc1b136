/**
 * The pages in `docs/how-to` are short, complete and true beyond what `named-things.test.ts` checks of all pages, above
 * all that `check` accepts each configuration.
 */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { directoryWith } from "./checked-configuration.ts";
import { codeIn, readDocument, ROOT } from "./markdown.ts";

const pages = globSync("docs/how-to/*.md", { cwd: ROOT }).toSorted();
const page = (name: string) => readDocument(`docs/how-to/${name}.md`);
const noPromtool = spawnSync("promtool", ["--version"]).error !== undefined;

describe.each(pages)("%s", (name) => {
  const { text, blocks } = readDocument(name);

  test("fits on a screen, and ends with how to see that it works and where to read on", () => {
    expect(text.trimEnd().split("\n").length).toBeLessThanOrEqual(60);
    expect(text).toMatch(/^## See that it works$[^]*\bMore: /m);
  });

  test("shows a file to write", () => {
    expect(blocks.some((block) => /^# \S+\.yaml$|^\[Service\]$/m.test(block.text))).toBe(true);
  });

  test("names variables of existing keys", () => {
    const rows = readDocument("docs/reference/configuration.md").rows("key", "meaning");
    const keys = new Set(rows.map((row) => codeIn(row["key"]).toLowerCase()));
    const named = [...text.matchAll(/\bSALLYPORT_([A-Z]+__[A-Z_]+)=/g)].map(([, variable = ""]) =>
      variable.toLowerCase().replaceAll("__", "."),
    );
    expect(named.filter((key) => !keys.has(key))).toEqual([]);
  });
});

test("each page is in the map of documents", () => {
  const { text } = readDocument("docs/README.md");
  expect(pages.length).toBeGreaterThan(10);
  expect(pages.filter((name) => !text.includes(`(${name.replace("docs/", "")})`))).toEqual([]);
});

test.skipIf(noPromtool)(
  "promtool accepts the scrape configurations (skipped without it)",
  async () => {
    const blocks = page("prometheus").blocks.filter(({ text }) =>
      text.startsWith("# prometheus.yaml"),
    );
    expect(blocks).toHaveLength(2);
    const rules = readFileSync(join(ROOT, "deploy/prometheus/sallyport.rules.yaml"));
    for (const { text } of blocks) {
      // Debian's promtool knows no Kubernetes.
      const discovery = /kubernetes_sd_configs: .*/;
      const content = text.replace(discovery, "static_configs: [{ targets: [a] }]");
      const files = { "prometheus.yaml": content, "sallyport.rules.yaml": rules };
      const directory = await directoryWith(files);
      const file = join(directory, "prometheus.yaml");
      const { status, stdout, stderr } = spawnSync("promtool", ["check", "config", file], {
        encoding: "utf8",
      });
      expect(status, stdout + stderr).toBe(0);
    }
  },
);

test("the number of alerts is right", () => {
  const rules = readFileSync(join(ROOT, "deploy/prometheus/sallyport.rules.yaml"), "utf8");
  const alerts = [...rules.matchAll(/^ *- alert:/gm)].length;
  expect(page("prometheus").text).toContain(` ${alerts} alerts`);
});

interface Service {
  readonly network_mode?: string;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
}

test("in the compose file, the app is reachable only through Sallyport", () => {
  const [block] = page("docker").blocks.filter(({ text }) => text.startsWith("# compose.yaml"));
  const { services } = parse(block?.text ?? "") as { services: Readonly<Record<string, Service>> };
  const { sallyport, app } = services;
  expect(app).toMatchObject({ network_mode: "service:sallyport" });
  expect(app?.ports).toBeUndefined();
  expect(sallyport?.ports).toEqual(["8443:8443"]);
  const image = readFileSync(join(ROOT, "Dockerfile"), "utf8");
  const [, folder] = /^ENV SALLYPORT_CONFIG=(\S+)\/config\.yaml$/m.exec(image) ?? [];
  expect(sallyport?.volumes).toEqual([`./deployment:${folder}:ro`]);
});
