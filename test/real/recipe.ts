/** Runs what a page in `docs/recipes` shows: its configuration, and its commands. */
import { parse } from "yaml";
import { readDocument } from "../docs/markdown.ts";
import { ALICE, cheapHash, type Sallyport, startSallyport } from "../support/sallyport.ts";

/** Returns the text of the block of a page that begins with these words. */
export function recipeBlock(page: string, beginning: string): string {
  const { blocks } = readDocument(`docs/recipes/${page}.md`);
  const found = blocks.find(({ text }) => text.startsWith(beginning));
  if (found === undefined) throw new Error(`${page}.md has no block that begins with ${beginning}`);
  return found.text;
}

/**
 * Starts Sallyport with the configuration of a page, at another address and in front of this target. Alice is in these groups.
 */
export function startRecipe(page: string, target: string, groups: string[]): Promise<Sallyport> {
  const { server, upstreams, ...rest } = parse(recipeBlock(page, "# config.yaml")) as {
    readonly server: object;
    readonly upstreams: { readonly app: object };
  };
  const users = { [ALICE.username]: { password: cheapHash(ALICE.password), groups } };
  return startSallyport({
    target,
    files: { "users.yaml": JSON.stringify({ users }) },
    config: {
      ...rest,
      server: { ...server, listen: "127.0.0.1:0" },
      upstreams: { app: { ...upstreams.app, targets: [target] } },
    },
  });
}

/** Returns the words of the command of a page that begins with this program, with one of them replaced. */
export function recipeCommand(page: string, program: string, ...edits: [string, string][]) {
  let [line = ""] = recipeBlock(page, program).split("\n");
  for (const [from, to] of edits) {
    if (!line.includes(from)) throw new Error(`${page}.md has no ${from} in ${line}`);
    line = line.replace(from, to);
  }
  return line.split(" ").slice(1);
}
