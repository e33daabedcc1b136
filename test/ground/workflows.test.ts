/**
 * Nobody who takes over an action, a library or a base image gets at what the workflows may publish: actions are pinned by
 * commit, and what runs code of others has neither a secret nor the right to write.
 */
import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface Job {
  readonly container?: string;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
}

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const files = globSync("../../.github/workflows/*.y{a,}ml", { cwd: import.meta.dirname });
/** Commands that run code which npm or a base image brought along. `npm publish` runs `prepack` without this flag. */
const RUNS_CODE =
  /\bnpm (?:ci|install|run|pack|exec|test)\b|\bnpx\b|\.ci\/run|npm publish(?!.*--ignore-scripts)/;

it("there are workflows", () => {
  expect(files.map((file) => basename(file))).toContain("release.yaml");
});

describe.each(files)("%s", (file) => {
  const text = readFileSync(new URL(file, import.meta.url), "utf8");
  const { permissions, jobs }: Workflow = parse(text);
  const steps = Object.values(jobs).flatMap((job) => job.steps);

  it("pins every action by commit, and names the version", () => {
    const used = [...text.matchAll(/^\s*(?:- )?uses: *(.*)$/gm)].map(([, reference]) => reference);
    expect(used).toHaveLength(steps.filter(({ uses }) => uses !== undefined).length);
    for (const reference of used) {
      expect(reference).toMatch(/^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    }
  });

  it("gives what runs code of others no secret and nothing to write", () => {
    expect(permissions).toEqual({ contents: "read" });
    for (const [name, job] of Object.entries(jobs)) {
      const runs = job.steps.some(({ run = "" }) => RUNS_CODE.test(run));
      const unpinned = job.container !== undefined && !/@sha256:[0-9a-f]{64}$/.test(job.container);
      if (!runs && !unpinned) continue;
      const granted = Object.entries(job.permissions ?? permissions);
      expect({ name, granted }).toEqual({ name, granted: [["contents", "read"]] });
      expect(JSON.stringify(job)).not.toContain("secrets.");
    }
  });
});
