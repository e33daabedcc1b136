import { startNginx } from "../backends/nginx.ts";
import { startProxy } from "../machine/cores.ts";
import { freePort } from "../machine/ports.ts";
import { missingPrograms } from "../machine/programs.ts";
import type { Peer } from "./peer.ts";

/** nginx with one worker and keep-alive connections to the backend. */
export const nginx: Peer = {
  title: "nginx, no authentication",
  checks: undefined,
  missing: () => missingPrograms("nginx"),
  async start(setting, { backend, tls, cores }) {
    const port = await freePort();
    const { certFile, keyFile } = setting.certificate;
    const encryption = `ssl_certificate ${certFile};
    ssl_certificate_key ${keyFile};
    ssl_protocols TLSv1.3;`;
    return startNginx(
      setting,
      port,
      `map $http_upgrade $connection_upgrade { default upgrade; "" ""; }
  upstream app { server 127.0.0.1:${backend}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port}${tls ? " ssl" : ""};
    ${tls ? encryption : ""}
    location / {
      proxy_pass http://app;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_read_timeout 10m;
      proxy_request_buffering off;
      proxy_max_temp_file_size 0;
    }
  }`,
      (command, args) => startProxy(cores, command, args),
    );
  },
};
