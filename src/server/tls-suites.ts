/**
 * What is agreed on with clients: forward secrecy and authenticated encryption alone (RFC 9325 §4.2). TLS 1.3 has nothing
 * else; of TLS 1.2 it is ECDHE with GCM or ChaCha20-Poly1305. Level 2 of OpenSSL refuses keys and signatures of less than
 * 112 bits, whatever its own configuration file says.
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
