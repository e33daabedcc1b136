import { UsageError } from "../command.ts";

/** One directive with its arguments and the directives in its braces. */
export interface Directive {
  readonly name: string;
  readonly args: readonly string[];
  /** Empty for a directive that ends with a semicolon. */
  readonly block: readonly Directive[];
}

/** A comment, a quoted text, a brace or a semicolon, or a word. */
const TOKEN =
  /#[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[{};]|(?:\$\{[^{}]*\}|\\.|[^\s{};"'#\\])(?:\$\{[^{}]*\}|\\.|[^\s{};\\])*/gs;
const DEEPEST = 20;

/** Parses the text of an nginx configuration, without its includes. @throws UsageError for invalid syntax. */
export function parseNginx(text: string): Directive[] {
  const tokens = (text.match(TOKEN) ?? []).filter((token) => !token.startsWith("#"));
  let at = 0;

  function block(depth: number): Directive[] {
    if (depth > DEEPEST) throw new UsageError("the blocks of the file are nested too deeply");
    const directives: Directive[] = [];
    let words: string[] = [];
    while (at < tokens.length) {
      const token = tokens[at] ?? "";
      if (token === "}") break;
      at += 1;
      if (token === ";" || token === "{") {
        const [name = "", ...args] = words;
        const inner = token === "{" ? block(depth + 1) : [];
        if (token === "{" && tokens[at] !== "}")
          throw new UsageError("the file has a block without a closing brace");
        if (token === "{") at += 1;
        if (name !== "") directives.push({ name, args, block: inner });
        words = [];
      } else words.push(unquoted(token));
    }
    if (words.length > 0) throw new UsageError("the file has a directive without a semicolon");
    return directives;
  }

  const all = block(0);
  if (at < tokens.length) throw new UsageError("the file has an unmatched closing brace");
  return all;
}

function unquoted(token: string): string {
  return /^["']/.test(token) ? token.slice(1, -1).replaceAll(/\\(["'\\])/g, "$1") : token;
}

/** Returns all blocks with this name, at any depth. */
export function blocksNamed(directives: readonly Directive[], name: string): Directive[] {
  return directives.flatMap((directive) => [
    ...(directive.name === name ? [directive] : []),
    ...blocksNamed(directive.block, name),
  ]);
}

/** Returns the arguments of the last directive with this name; undefined if there is none. */
export function argsOf(
  directives: readonly Directive[],
  name: string,
): readonly string[] | undefined {
  return directives.findLast((directive) => directive.name === name)?.args;
}
