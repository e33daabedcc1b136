import { createLogSink } from "../observe/log-sink.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  parseFlags,
} from "./arguments.ts";
import type { Command } from "./command.ts";
import { readForReload } from "./inspect.ts";
import { ownVersion } from "./own-version.ts";
import { runUntilStopped } from "./run-until-stopped.ts";
import { start } from "./start.ts";

export const serve: Command = {
  help: `Usage: sallyport serve [options]

Runs the proxy. The configuration and the files that it names are read again when they change, on
SIGHUP and on POST /-/reload of the admin listener; on any error what was in force stays in force.
SIGTERM or SIGINT drains: readiness fails, new requests are served for
server.drain.delay, what runs may finish until server.drain.timeout. A second signal ends it now.

${CONFIGURATION_HELP}
  -h, --help            this text`,
  async run(args, terminal) {
    const flags = parseFlags(args, CONFIGURATION_FLAGS);
    const sources = configurationSources(flags, terminal);
    const { configuration, files } = await readForReload(sources);
    const sink = createLogSink({ format: configuration.log.format });
    const app = await start(
      {
        ...{ configuration, version: ownVersion(), sink },
        source: { files, read: () => readForReload(sources) },
      },
      "choose another with server.listen or admin.listen",
    );
    process.on("SIGHUP", () => void app.reload());
    return runUntilStopped(app, sink);
  },
};
