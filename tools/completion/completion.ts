import { parseFlags } from "../../src/cli/arguments.ts";
import { type Command, EXIT, UsageError } from "../../src/cli/command.ts";
import { formatFrom } from "../../src/cli/terminal/format.ts";

/**
 * Creates the command that prints completion scripts.
 *
 * @param commands the names of all commands.
 * @param helpOf gives the help text of a command: its sub-commands, options and their values are completed.
 */
export function createCompletion(
  commands: readonly string[],
  helpOf: (name: string) => Promise<string>,
): Command {
  return {
    help: `Usage: sallyport completion bash|zsh|fish

Prints a completion script for bash, zsh or fish. For example, in ~/.bashrc: source <(sallyport completion bash)

      --shell bash|zsh|fish the same
  -h, --help                this text`,
    async run(args, terminal) {
      const [word = "", ...more] = args;
      const isShell = word !== "" && !word.startsWith("-") && more.length === 0;
      const shell = isShell ? word : parseFlags(args, { shell: { type: "string" } }).shell;
      if (shell === undefined) throw new UsageError("say which shell: bash, zsh or fish");
      const kind = formatFrom(shell, ["bash", "zsh", "fish"], "--shell");
      const helpTexts = await Promise.all(
        commands.map(async (name) => [name, await helpOf(name)] as const),
      );
      terminal.out(SCRIPTS[kind](offersOf(new Map(helpTexts))));
      return EXIT.done;
    },
  };
}

/** `rotate` or `bash|zsh|fish` after the name of the command in a line of its usage. */
const USAGE = /^(?:Usage:| {6}) sallyport [a-z-]+ ([a-z][a-z|]*)/gm;
/** `-c, --config FILE`, `--format text|json`, `--strict`: an option with its placeholder. */
const OPTION = /^ {2,6}(?:(-\w), )?(--[a-z-]+)(?: ('?[A-Z][A-Z:]*|[a-z0-9-]+(?:\|[a-z0-9-]+)+))?/gm;

/**
 * Returns a function of every POSIX shell. It prints what can follow: words, `FILES`, or nothing. Its parameters are the
 * command, the word before the cursor, the number of words before it, and what is typed of the word at the cursor.
 */
function offersOf(helpTexts: ReadonlyMap<string, string>): string {
  const names = [...helpTexts.keys()].join(" ");
  const values: string[] = [];
  const words = [`    help:2:*) echo "${names}"; return ;;`];
  const options: string[] = [];
  for (const [name, help] of helpTexts) {
    const found = [...help.matchAll(OPTION)];
    for (const [, short, long = "", value] of found) {
      const spelt = [long, short].flatMap((flag) => (flag ? [`"${name} ${flag}"`] : []));
      if (value) values.push(`    ${spelt.join("|")}) echo "${offered(value)}"; return ;;`);
    }
    const first = Array.from(help.matchAll(USAGE), ([, word = ""]) => word.replaceAll("|", " "));
    const isTyped = `${name}:2:|${name}:2:[!-]*`;
    if (first.length > 0) words.push(`    ${isTyped}) echo "${first.join(" ")}"; return ;;`);
    const flags = new Set(found.map(([, , long = ""]) => long));
    options.push(`    ${name}) echo "${[...flags].join(" ")}" ;;`);
  }
  return `_sallyport_offers() {
  if [ "$3" = 1 ]; then echo "${names} help"; return; fi
  case "$1 $2" in
${values.join("\n")}
  esac
  case "$1:$3:$4" in
${words.join("\n")}
  esac
  case "$1" in
${options.join("\n")}
  esac
}`;
}

/** Returns what is offered for a placeholder: files, its words, or nothing. */
function offered(placeholder: string): string {
  if (["FILE", "DIR"].includes(placeholder)) return "FILES";
  return placeholder.includes("|") ? placeholder.replaceAll("|", " ") : "";
}

/** Each script hands the line to the function, and offers what it prints. */
const SCRIPTS: Readonly<Record<"bash" | "zsh" | "fish", (offers: string) => string>> = {
  // With an empty reply, `-o default` offers files.
  bash: (offers) => `${offers}
_sallyport() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}"
  if [ "$word" = "=" ]; then word=""; elif [ "$before" = "=" ]; then before="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  local offers="$(_sallyport_offers "\${COMP_WORDS[1]}" "$before" "$COMP_CWORD" "$word")"
  COMPREPLY=()
  case "$offers" in
    FILES) ;;
    "") compopt +o default ;;
    *) COMPREPLY=($(compgen -W "$offers" -- "$word")) ;;
  esac
}
complete -o default -F _sallyport sallyport
`,
  zsh: (offers) => `#compdef sallyport
${offers}
_sallyport() {
  local offers="$(_sallyport_offers "\${words[2]}" "\${words[CURRENT-1]}" $((CURRENT - 1)) "\${words[CURRENT]}")"
  if [ "$offers" = FILES ]; then _files; else compadd -- \${=offers}; fi
}
compdef _sallyport sallyport
`,
  fish: (offers) => `set -g _sallyport_offers '${offers}
_sallyport_offers "$@"'
function _sallyport
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  set -l option (string match -r -- "^--[^=]+=" "$word")
  set -l before (string trim -r -c = -- $option $words[-1])[1]
  sh -c $_sallyport_offers sh "$words[2]" "$before" (count $words) "$word" | string split -n " " | string replace -r -- "^" "$option"
end
complete -c sallyport -f -a "(_sallyport | string match -v '*FILES')"
complete -c sallyport -n "_sallyport | string match -q '*FILES'" -F
`,
};
