/** Whoever follows a link in the documents arrives: the file is there, and so is the heading. */
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./markdown.ts";

const documents = globSync("{*.md,docs/**/*.md,deploy/**/*.md}", { cwd: ROOT }).toSorted();

interface Link {
  readonly file: string;
  readonly anchor: string;
}

test("the documents are found", () => {
  expect(documents).toContain("README.md");
  expect(documents).toContain("docs/migration/oauth2-proxy.md");
  expect(documents).toContain("deploy/kubernetes/README.md");
});

test("an anchor is made of its heading as the forges make it", () => {
  const text = "# A `b_c` d-e: f?\n\n```sh\n# no heading\n```\n\n## Twice\n\n## Twice\n";
  expect([...anchorsIn(text)]).toEqual(["a-b_c-d-e-f", "twice", "twice-1"]);
});

test.each(documents)("every relative link of %s leads somewhere", (document) => {
  const dead = linksIn(document).filter(({ file, anchor }) => {
    const path = join(ROOT, file);
    if (!existsSync(path)) return true;
    if (anchor === "") return false;
    return statSync(path).isDirectory() || !anchors(file).has(anchor);
  });
  expect(dead).toEqual([]);
});

test.each(documents.filter((document) => document.startsWith("docs/")))(
  "%s can be reached from the README or from a document that can",
  (document) => {
    expect([...reachable()]).toContain(document);
  },
);

/** Every document that links lead to, from the README on. */
function reachable(): Set<string> {
  const seen = new Set(["README.md"]);
  for (const document of seen) {
    if (!document.endsWith(".md")) continue;
    for (const { file } of linksIn(document)) if (existsSync(join(ROOT, file))) seen.add(file);
  }
  return seen;
}

/** The links of a document that stay in the repository, seen from its root. */
function linksIn(document: string): Link[] {
  const text = withoutCode(textOf(document));
  return [...text.matchAll(/\]\(([^()\s]+)\)/g)].flatMap(([, target = ""]) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [path = "", anchor = ""] = target.split("#");
    const file = path === "" ? document : normalize(join(dirname(document), path));
    return [{ file, anchor }];
  });
}

const anchorsOf = new Map<string, ReadonlySet<string>>();

/** The anchors of a document, read once. */
function anchors(file: string): ReadonlySet<string> {
  const known = anchorsOf.get(file) ?? anchorsIn(textOf(file));
  anchorsOf.set(file, known);
  return known;
}

function anchorsIn(text: string): Set<string> {
  const found = new Set<string>();
  for (const [, heading = ""] of withoutBlocks(text).matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const anchor = slug(heading);
    const times = [...found].filter((other) => other.replace(/-\d+$/, "") === anchor).length;
    found.add(times === 0 ? anchor : `${anchor}-${times}`);
  }
  return found;
}

/** Lower case, blanks as hyphens, and nothing but letters, digits, `_` and `-`. */
function slug(heading: string): string {
  const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
  return plain.replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-");
}

function withoutBlocks(text: string): string {
  return text.replaceAll(/^```.*?^```$/gms, "");
}

function withoutCode(text: string): string {
  return withoutBlocks(text).replaceAll(/`[^`\n]*`/g, "");
}

function textOf(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}
