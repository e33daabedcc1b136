import { join } from "node:path";
import { startProxy } from "../machine/cores.ts";
import { accepting, freePort } from "../machine/ports.ts";
import { missingPrograms, needProgram } from "../machine/programs.ts";
import type { Peer } from "./peer.ts";
import { running } from "./running.ts";

/** Caddy's `reverse_proxy` with one thread for Go code. */
export const caddy: Peer = {
  title: "Caddy, no authentication",
  checks: undefined,
  missing: () => missingPrograms("caddy"),
  async start(setting, { backend, tls, cores, http2 }) {
    const port = await freePort();
    const { certFile, keyFile } = setting.certificate;
    const file = await setting.write(
      `caddy-${port}`,
      `{
	admin off
	auto_https disable_redirects
	default_sni localhost
	servers {
		protocols ${http2 === undefined ? "h1" : tls ? "h1 h2" : "h1 h2c"}
	}
	log {
		level ERROR
	}
}

${tls ? "https" : "http"}://:${port} {
	bind 127.0.0.1
	${tls ? `tls ${certFile} ${keyFile} {\n\t\tprotocols tls1.3\n\t}` : ""}
	reverse_proxy ${http2 === "both" ? "h2c://" : ""}127.0.0.1:${backend}
}
`,
    );
    // Caddy stores state in the home directory; this one is temporary.
    const home = join(setting.directory, `caddy-home-${port}`);
    const child = startProxy(
      cores,
      needProgram("caddy"),
      ["run", "--adapter", "caddyfile", "--config", file],
      { GOMAXPROCS: "1", HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home },
    );
    return running(child, accepting(port, child));
  },
};
