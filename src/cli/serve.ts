import { startApp } from "../app/start.ts";
import { loadConfiguration } from "../config/load.ts";
import { checkNamedFiles } from "../config/named-files.ts";
import { ConfigError } from "../core/config-problem.ts";
import { createLogSink } from "../observe/log-sink.ts";
import { CONFIGURATION_FLAGS, CONFIGURATION_HELP, overridesOf, parseFlags } from "./arguments.ts";
import type { Command } from "./command.ts";
import { ownVersion } from "./own-version.ts";
import { runUntilStopped } from "./run-until-stopped.ts";

export const serve: Command = {
  name: "serve",
  summary: "run the proxy",
  help: `Usage: sallyport serve [options]

Runs the proxy until SIGTERM or SIGINT, then drains: readiness fails, new requests are served for
server.drain.delay, what runs may finish until server.drain.timeout. A second signal ends it now.

${CONFIGURATION_HELP}
  -h, --help            this text`,
  async run(args, terminal) {
    const flags = parseFlags(args, CONFIGURATION_FLAGS);
    const loaded = loadConfiguration({
      file: flags.config ?? "config.yaml",
      env: terminal.env,
      overrides: overridesOf(flags.set),
    });
    const problems = checkNamedFiles(loaded);
    if (problems.length > 0) throw new ConfigError(problems);
    const { configuration } = loaded;
    const sink = createLogSink({ format: configuration.log.format });
    const app = await startApp({ configuration, version: ownVersion(), sink });
    return runUntilStopped(app, sink);
  },
};
