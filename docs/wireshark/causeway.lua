-- Wireshark dissector for the frames of docs/protocol.md, as “causeway capture” writes them (LINKTYPE_USER0).
--
-- Put it into ~/.local/lib/wireshark/plugins, or: wireshark -X lua_script:causeway.lua FILE
-- Wireshark and tshark load no Lua scripts when root runs them, and say nothing of it.
--
-- A record begins with 16 bytes that the box adds:
--   0 version (1) | 1 direction (0 received, 1 sent) | 2 link | 3 bearer | 4 flags (bit 0: outside TLS) | 5–7 zero
--   8–15 the first 8 bytes of the neighbour's id
-- The frame follows: 48 bytes of header, and the payload if it was captured.

local proto = Proto("causeway", "Causeway")

local PASSAGE_BYTES, HEADER_BYTES, PAYLOAD_MAX = 16, 48, 16640

local BEARERS = { [1] = "Ethernet", [2] = "Wi-Fi", [3] = "Wi-Fi Direct", [4] = "Bluetooth LE", [5] = "loopback",
  [6] = "Bluetooth classic" }
local PRIORITIES = { [0] = "control", [1] = "realtime", [2] = "interactive", [3] = "bulk" }
local TYPES = {
  [1] = "hello", [2] = "ping", [3] = "pong", [4] = "goodbye", [5] = "request", [16] = "advertisement", [17] = "deny-list",
  [32] = "segment", [33] = "acknowledgement", [34] = "datagram", [35] = "reset", [36] = "handshake", [37] = "sealed",
}
local REASONS = {
  [1] = "shutting down", [2] = "another link was kept", [3] = "no slot is free", [4] = "protocol violation",
  [5] = "id is not the certificate's", [6] = "no common version", [7] = "no bytes in time", [8] = "stream failed",
  [9] = "key revoked, or name of another key", [10] = "no longer needed", [11] = "parked",
}
local KINDS = { [1] = "topology", [2] = "profile", [3] = "services" }
local LANES = { [0] = "interactive", [1] = "bulk" }
local PREFERENCES = { [0] = "required", [1] = "optional", [2] = "none", [3] = "required" }
local RECORDS = { [20] = "change_cipher_spec", [21] = "alert", [22] = "handshake", [23] = "application_data" }
local MESSAGES = {
  [0] = "hello_request", [1] = "client_hello", [2] = "server_hello", [3] = "hello_verify_request", [11] = "certificate",
  [12] = "server_key_exchange", [13] = "certificate_request", [14] = "server_hello_done", [15] = "certificate_verify",
  [16] = "client_key_exchange", [20] = "finished",
}

-- Name in filters → the field. docs/operations/read-the-box.md, “Captures”, lists them.
local f = {}
local function field(kind, name, title, ...)
  f[name] = ProtoField[kind]("causeway." .. name, title, ...)
end
field("uint8", "passage.version", "Version of the capture")
field("uint8", "direction", "Direction", base.DEC, { [0] = "received", [1] = "sent" })
field("uint8", "link", "Link")
field("uint8", "bearer", "Bearer", base.DEC, BEARERS)
field("bool", "beside", "Beside TLS", 8, nil, 0x01)
field("bytes", "neighbour", "Neighbour")
field("uint8", "marker", "Marker", base.HEX)
field("uint8", "type", "Type", base.DEC, TYPES)
field("uint8", "flags", "Flags", base.HEX)
field("bool", "sealed", "Sealed", 8, nil, 0x01)
field("uint8", "ttl", "Hops left")
field("uint8", "priority", "Priority", base.DEC, PRIORITIES)
field("uint16", "length", "Payload length")
field("bytes", "dst", "Destination")
field("bytes", "src", "Source")
field("uint64", "id", "Identifier", base.HEX)
field("uint64", "age", "Age in ms")
field("bytes", "payload", "Payload")
field("uint8", "zero", "Zero")

field("uint8", "hello.lowest", "Lowest version")
field("uint8", "hello.highest", "Highest version")
field("uint16", "hello.payload_max", "Longest payload")
field("uint32", "hello.capabilities", "Capabilities", base.HEX)
field("bool", "hello.relays", "Relays", 32, nil, 0x01)
field("bool", "hello.parks", "May be parked", 32, nil, 0x04)
field("bool", "hello.bypass", "Accepts the bypass", 32, nil, 0x08)
field("uint64", "epoch", "Boot epoch", base.HEX)
field("bytes", "hello.node", "Node")
field("uint8", "text_length", "Length of the text")
field("string", "name", "Display name", base.UNICODE)
field("bytes", "ping.data", "Data")
field("uint8", "goodbye.reason", "Reason", base.DEC, REASONS)
field("uint16", "goodbye.retry", "Come back after s")
field("uint8", "request.count", "Nodes")
field("bytes", "request.node", "Node")

field("uint8", "adv.kind", "Kind", base.DEC, KINDS)
field("uint16", "adv.lifetime", "Lifetime in s")
field("uint64", "adv.sequence", "Sequence number")
field("bytes", "key", "Public key")
field("bytes", "signature", "Signature")
field("uint8", "topology.flags", "Flags", base.HEX)
field("bool", "topology.forwards", "Forwards for others", 8, nil, 0x01)
field("uint8", "topology.encryption", "Encryption preference", base.DEC, PREFERENCES, 0x06)
field("uint8", "topology.count", "Neighbours")
field("bytes", "topology.node", "Neighbour")
field("uint16", "topology.cost", "Cost")
field("uint16", "topology.payload_max", "Longest payload")
field("uint8", "topology.bearer", "Bearer", base.DEC, BEARERS)
field("string", "service", "Service type", base.UNICODE)
field("uint8", "pairs", "Pairs")
field("string", "pair", "Pair", base.UNICODE)
field("uint8", "services.count", "Services")
field("uint32", "services.endpoint", "Endpoint", base.HEX)
field("uint16", "services.pairs_length", "Bytes of the pairs")
field("uint16", "deny.count", "Keys")
field("uint64", "deny.serial", "Serial")
field("absolute_time", "deny.made", "Made")
field("bytes", "deny.node", "Revoked")

field("uint64", "delivery.dst_epoch", "Destination's channel epoch", base.HEX)
field("uint64", "delivery.src_epoch", "Source's channel epoch", base.HEX)
field("uint8", "delivery.lane", "Lane", base.DEC, LANES)
field("uint32", "delivery.clock", "Clock in µs")
field("uint64", "segment.offset", "Offset")
field("bytes", "segment.data", "Data")
field("uint8", "ack.ranges", "Ranges")
field("uint64", "ack.cumulative", "All below arrived")
field("uint64", "ack.limit", "Window limit")
field("uint64", "ack.start", "Range start")
field("uint64", "ack.end", "Range end")
field("uint8", "datagram.kind", "Kind")
field("uint64", "datagram.number", "Number")
field("bytes", "datagram.data", "Data")
field("uint64", "reset.of", "Epoch that is not known", base.HEX)
field("uint64", "reset.epoch", "Present channel epoch", base.HEX)
field("uint64", "handshake.dst_epoch", "Destination's boot epoch", base.HEX)
field("uint64", "handshake.src_epoch", "Source's boot epoch", base.HEX)
field("uint8", "dtls.type", "DTLS record", base.DEC, RECORDS)
field("uint16", "dtls.version", "Version", base.HEX)
field("uint16", "dtls.epoch", "Epoch")
field("uint64", "dtls.sequence", "Sequence number")
field("uint16", "dtls.length", "Length")
field("uint8", "dtls.message", "Handshake message", base.DEC, MESSAGES)
field("bytes", "dtls.body", "Body")

local fields = {}
for _, each in pairs(f) do fields[#fields + 1] = each end
proto.fields = fields

local experts = {
  version = ProtoExpert.new("causeway.bad.version", "Unknown version of the capture", expert.group.UNDECODED, expert.severity.WARN),
  marker = ProtoExpert.new("causeway.bad.marker", "No frame of version 1", expert.group.MALFORMED, expert.severity.ERROR),
  short = ProtoExpert.new("causeway.bad.short", "A field or the payload is incomplete", expert.group.MALFORMED, expert.severity.ERROR),
  long = ProtoExpert.new("causeway.bad.long", "Bytes after the end", expert.group.MALFORMED, expert.severity.ERROR),
  range = ProtoExpert.new("causeway.bad.range", "A number outside its table", expert.group.MALFORMED, expert.severity.ERROR),
  zero = ProtoExpert.new("causeway.bad.zero", "A reserved field is not zero", expert.group.MALFORMED, expert.severity.ERROR),
  type = ProtoExpert.new("causeway.unknown_type", "Type of a later version", expert.group.UNDECODED, expert.severity.NOTE),
  headers = ProtoExpert.new("causeway.headers_only", "The payload was not captured", expert.group.COMMENTS_GROUP, expert.severity.CHAT),
}
proto.experts = { experts.version, experts.marker, experts.short, experts.long, experts.range, experts.zero, experts.type, experts.headers }

-- Reads fields one after the other. What is incomplete ends the reading, by an error that is caught in one place.
local INCOMPLETE = {}
local Reader = {}
Reader.__index = Reader

local function read(range, tree) return setmetatable({ range = range, tree = tree, at = 0 }, Reader) end

function Reader:left() return self.range:len() - self.at end

function Reader:bytes(count)
  if count > self:left() then error(INCOMPLETE, 0) end
  local bytes = self.range:range(self.at, count)
  self.at = self.at + count
  return bytes
end

function Reader:add(name, count)
  local bytes = self:bytes(count)
  self.item = self.tree:add(f[name], bytes)
  return bytes
end

function Reader:wrong(name) (self.item or self.tree):add_proto_expert_info(experts[name]) end

-- A number that must be in a table, or between two values.
function Reader:number(name, count, least, most)
  local value = self:add(name, count):uint()
  if value < least or value > most then self:wrong("range") end
  return value
end

function Reader:zeros(count)
  for _ = 1, count do
    local byte = self:bytes(1)
    if byte:uint() ~= 0 then
      self.item = self.tree:add(f.zero, byte)
      self:wrong("zero")
    end
  end
end

-- A length byte and a text.
function Reader:text(name)
  local count = self:add("text_length", 1):uint()
  if count == 0 then
    self:wrong("range")
    return ""
  end
  return self:add(name, count):string(ENC_UTF_8)
end

function Reader:done()
  if self:left() > 0 then
    self.item = self.tree:add(f.payload, self:bytes(self:left()))
    self:wrong("long")
  end
end

local function short(range) return tostring(range:range(0, 4):bytes()):lower() end

-- Each payload: reads all of it, and returns what is worth a place in the column Info.
local payloads = {}

payloads[1] = function(r)
  r:add("hello.lowest", 1)
  r:add("hello.highest", 1)
  r:number("hello.payload_max", 2, 2048, 65535)
  local capabilities = r:bytes(4)
  local tree = r.tree:add(f["hello.capabilities"], capabilities)
  for _, name in ipairs({ "relays", "parks", "bypass" }) do tree:add(f["hello." .. name], capabilities) end
  r:add("epoch", 8)
  r:add("hello.node", 16)
  local name = r:text("name")
  -- A later version may have more.
  if r:left() > 0 then r:add("payload", r:left()) end
  return name
end

payloads[2] = function(r)
  r:add("ping.data", 8)
  r:done()
end
payloads[3] = payloads[2]

payloads[4] = function(r)
  local reason = r:add("goodbye.reason", 1):uint()
  r:zeros(1)
  r:add("goodbye.retry", 2)
  r:done()
  return REASONS[reason] or "unknown reason"
end

payloads[5] = function(r)
  local count = r:number("request.count", 1, 0, 64)
  r:zeros(3)
  for _ = 1, count do r:add("request.node", 16) end
  r:done()
  return count == 0 and "everything" or count .. " nodes"
end

local function addPairs(r, count)
  for _ = 1, count do r:text("pair") end
end

local bodies = {}
bodies[1] = function(r)
  local flags = r:bytes(1)
  local tree = r.tree:add(f["topology.flags"], flags)
  tree:add(f["topology.forwards"], flags)
  tree:add(f["topology.encryption"], flags)
  local count = r:number("topology.count", 1, 0, 64)
  r:zeros(2)
  for _ = 1, count do
    r:add("topology.node", 16)
    r:number("topology.cost", 2, 1, 65535)
    r:number("topology.payload_max", 2, 2048, 65535)
    r:number("topology.bearer", 1, 1, 5)
    r:zeros(3)
  end
  return count .. " neighbours"
end
bodies[2] = function(r)
  local name = r:text("name")
  local service = r:text("service")
  addPairs(r, r:add("pairs", 1):uint())
  return name .. ", " .. service
end
bodies[3] = function(r)
  local count = r:number("services.count", 1, 0, 16)
  for _ = 1, count do
    r:number("services.endpoint", 4, 1, 4294967295)
    r:text("service")
    local pairs = r:add("pairs", 1):uint()
    r:add("services.pairs_length", 2)
    addPairs(r, pairs)
  end
  return count .. " services"
end

payloads[16] = function(r)
  local kind = r:number("adv.kind", 1, 1, 3)
  r:zeros(1)
  r:number("adv.lifetime", 2, 1, 3600)
  r:add("epoch", 8)
  local sequence = r:add("adv.sequence", 8):uint64()
  r:add("key", 65)
  if r:left() < 64 then error(INCOMPLETE, 0) end
  local text = KINDS[kind] or "unknown kind"
  local count = r:left() - 64
  if bodies[kind] and count > 0 then
    local body = read(r:bytes(count), r.tree)
    text = text .. " " .. tostring(sequence) .. ": " .. bodies[kind](body)
    body:done()
  elseif count > 0 then
    r:add("payload", count)
  end
  r:add("signature", 64)
  return text
end

payloads[17] = function(r)
  r:zeros(2)
  local count = r:number("deny.count", 2, 0, 112)
  r:add("deny.serial", 8)
  local made = r:bytes(8)
  r.tree:add(f["deny.made"], made, NSTime.new(made:uint64():tonumber()))
  r:add("key", 65)
  for _ = 1, count do r:add("deny.node", 16) end
  r:add("signature", 64)
  r:done()
  return count .. " keys"
end

local function addEpochs(r)
  r:add("delivery.dst_epoch", 8)
  r:add("delivery.src_epoch", 8)
end

payloads[32] = function(r)
  addEpochs(r)
  local lane = r:number("delivery.lane", 1, 0, 1)
  r:zeros(3)
  r:add("delivery.clock", 4)
  local offset = r:add("segment.offset", 8):uint64()
  local count = math.max(r:left(), 1)
  r:add("segment.data", count)
  return string.format("%s lane, %d bytes at %s", LANES[lane] or "?", count, tostring(offset))
end

payloads[33] = function(r)
  addEpochs(r)
  local lane = r:number("delivery.lane", 1, 0, 1)
  local count = r:number("ack.ranges", 1, 0, 4)
  r:zeros(2)
  r:add("delivery.clock", 4)
  local cumulative = r:add("ack.cumulative", 8):uint64()
  r:add("ack.limit", 8)
  for _ = 1, count do
    r:add("ack.start", 8)
    r:add("ack.end", 8)
  end
  r:done()
  return string.format("%s lane, all below %s", LANES[lane] or "?", tostring(cumulative))
end

payloads[34] = function(r)
  addEpochs(r)
  r:add("datagram.kind", 1)
  r:zeros(3)
  local number = r:add("datagram.number", 8):uint64()
  if r:left() > 0 then r:add("datagram.data", r:left()) end
  return "number " .. tostring(number)
end

payloads[35] = function(r)
  r:add("reset.of", 8)
  r:add("reset.epoch", 8)
  r:done()
end

-- One DTLS 1.2 record (RFC 6347, 4.1); of a handshake in clear also which message it begins (4.2.2).
local function addRecord(r)
  local kind = r:number("dtls.type", 1, 20, 23)
  r:add("dtls.version", 2)
  local epoch = r:add("dtls.epoch", 2):uint()
  r:add("dtls.sequence", 6)
  local count = r:add("dtls.length", 2):uint()
  local body = r:bytes(count)
  local text = RECORDS[kind] or "?"
  if kind == 22 and epoch == 0 and count > 0 then
    local message = body:range(0, 1)
    r.tree:add(f["dtls.message"], message)
    text = MESSAGES[message:uint()] or text
  end
  if count > 0 then r.tree:add(f["dtls.body"], body) end
  return text
end

payloads[36] = function(r)
  r:add("handshake.dst_epoch", 8)
  r:add("handshake.src_epoch", 8)
  if r:left() == 0 then return "a request to begin" end
  local texts = {}
  while r:left() > 0 do texts[#texts + 1] = addRecord(r) end
  return table.concat(texts, ", ")
end

payloads[37] = function(r)
  addRecord(r)
  r:done()
end

local function addPassage(tree, buffer)
  local r = read(buffer:range(0, PASSAGE_BYTES), tree)
  r:add("passage.version", 1)
  if r.range:range(0, 1):uint() ~= 1 then r:wrong("version") end
  local isSent = r:number("direction", 1, 0, 1) == 1
  local link = r:add("link", 1):uint()
  r:number("bearer", 1, 1, 5)
  r:add("beside", 1)
  r:zeros(3)
  r:add("neighbour", 8)
  return isSent, link
end

-- Returns type, payload length, and the text of the header.
local function addHeader(tree, frame)
  local r = read(frame, tree)
  if r:add("marker", 1):uint() ~= 0x81 then r:wrong("marker") end
  local kind = r:add("type", 1):uint()
  if not TYPES[kind] then r:wrong("type") end
  local flags = r:bytes(1)
  local item = tree:add(f.flags, flags)
  item:add(f.sealed, flags)
  -- Bit 0 is set in sealed frames and in no other.
  if flags:uint() ~= (kind == 37 and 1 or 0) then item:add_proto_expert_info(experts.range) end
  local ttl = r:number("ttl", 1, 1, 255)
  local priority = r:number("priority", 1, 0, 3)
  r:zeros(1)
  local length = r:number("length", 2, 1, PAYLOAD_MAX)
  r:add("dst", 16)
  r:add("src", 16)
  r:add(kind == 16 and "age" or "id", 8)
  return kind, length, string.format("hops %d, %s", ttl, PRIORITIES[priority] or "?")
end

function proto.dissector(buffer, packet, root)
  packet.cols.protocol = "Causeway"
  local tree = root:add(proto, buffer())
  if buffer:len() < PASSAGE_BYTES + HEADER_BYTES then
    tree:add_proto_expert_info(experts.short)
    return buffer:len()
  end
  local isSent, link = addPassage(tree, buffer)
  local frame = buffer(PASSAGE_BYTES)
  local kind, length, text = addHeader(tree, frame:range(0, HEADER_BYTES))
  packet.cols.src = short(frame:range(24, 16))
  packet.cols.dst = short(frame:range(8, 16))
  local captured = frame:len() - HEADER_BYTES
  if buffer:reported_len() - PASSAGE_BYTES - HEADER_BYTES ~= length then
    tree:add_proto_expert_info(experts.short)
  elseif captured < length then
    tree:add_proto_expert_info(experts.headers)
  elseif payloads[kind] then
    local subtree = tree:add(proto, frame:range(HEADER_BYTES), "Payload: " .. TYPES[kind])
    local isWhole, result = pcall(payloads[kind], read(frame:range(HEADER_BYTES), subtree))
    if isWhole then
      text = result and result .. ", " .. text or text
    elseif result == INCOMPLETE then
      subtree:add_proto_expert_info(experts.short)
    else
      error(result, 0)
    end
  else
    tree:add(f.payload, frame:range(HEADER_BYTES))
  end
  packet.cols.info = string.format(
    "%s link %d: %s, %d bytes, %s", isSent and "→" or "←", link, TYPES[kind] or "type " .. kind, length, text)
  return buffer:len()
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, proto)
