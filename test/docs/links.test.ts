/** Every link in the documents leads to an existing file and heading. */
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

test("anchors are derived from headings the way code hosting sites do", () => {
  const text = "# A `b_c` d-e: f?\n\n```sh\n# no heading\n```\n\n## Twice\n\n## Twice\n";
  expect([...anchorsIn(text)]).toEqual(["a-b_c-d-e-f", "twice", "twice-1"]);
});

test.each(documents)("every relative link of %s has a target", (document) => {
  const dead = linksIn(document).filter(({ file, anchor }) => {
    const path = join(ROOT, file);
    if (!existsSync(path)) return true;
    if (anchor === "") return false;
    return statSync(path).isDirectory() || !anchors(file).has(anchor);
  });
  expect(dead).toEqual([]);
});

test.each(documents.filter((document) => document.startsWith("docs/")))(
  "%s can be reached from the README, directly or indirectly",
  (document) => {
    expect([...reachable()]).toContain(document);
  },
);

/** Returns every document that is reachable from the README. */
function reachable(): Set<string> {
  const seen = new Set(["README.md"]);
  for (const document of seen) {
    if (!document.endsWith(".md")) continue;
    for (const { file } of linksIn(document)) if (existsSync(join(ROOT, file))) seen.add(file);
  }
  return seen;
}

/** Returns the links of a document within the repository, relative to its root. */
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

/** Returns the anchors of a document; reads it only once. */
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

/** Returns a heading in lower case, with hyphens for spaces, and only letters, digits, `_` and `-`. */
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
