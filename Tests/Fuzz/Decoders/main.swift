import FuzzSupport

// Decoders of the core and the rim. They run under AddressSanitizer: see run.sh.
runTargets([
  ("frames", fuzzFrames),
  ("streams", fuzzStreams),
  ("advertisements", fuzzAdvertisements),
  ("sessions", fuzzSessions),
  ("local", fuzzLocal),
  ("control", fuzzControl),
  ("configurations", fuzzConfigurations),
  ("journals", fuzzJournals),
  ("management", fuzzManagement),
  ("attributes", fuzzAttributes),
  ("records", fuzzServiceRecords),
  ("setups", fuzzNetworkSetups),
  ("supplicant", fuzzSupplicant),
  ("requests", fuzzRequests),
  ("leases", fuzzLeases),
  ("services", fuzzServices),
  ("identities", fuzzIdentities),
  ("trust", fuzzTrust),
  ("sealing", fuzzSealing),
  ("resources", fuzzResources),
])
