// http-proxy-3 with its defaults (no agent, so each request opens a connection to the backend), and jose for each request.
import httpProxy from "http-proxy-3";
import { importSPKI, jwtVerify } from "jose";
import { given, listen } from "./given.mjs";

const key = await importSPKI(given.publicKey, given.algorithm);
const proxy = httpProxy.createProxyServer({ target: given.backend });
proxy.on("error", (_error, _request, response) => {
  if (response.writeHead && !response.headersSent) response.writeHead(502);
  response.end();
});

listen(async (request, response) => {
  try {
    const [, token = ""] = (request.headers.authorization ?? "").split(" ");
    await jwtVerify(token, key, {
      algorithms: [given.algorithm],
      issuer: given.issuer,
      audience: given.audience,
      requiredClaims: ["exp"],
    });
  } catch {
    response.writeHead(401).end();
    return;
  }
  proxy.web(request, response);
});
