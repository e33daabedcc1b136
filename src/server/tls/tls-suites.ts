/**
 * The cipher suites for clients: forward secrecy and authenticated encryption only (RFC 9325 §4.2). TLS 1.3 has no
 * others; for TLS 1.2 these are ECDHE with GCM or ChaCha20-Poly1305. OpenSSL's security level 2 refuses keys and
 * signatures with less than 112 bits of security, whatever its configuration file says.
 */
export const SUITES = [
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "TLS_AES_128_GCM_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
  "@SECLEVEL=2",
].join(":");
