#!/usr/bin/env python3
"""Checks every value of the golden vectors with code of its own. Needs nothing but Python 3.8 or later.

    python3 verify.py [DIRECTORY]

DIRECTORY holds the JSON files; without it, it is `v1` beside this file. Prints the number of cases of each file. Exit
code: 0 every value is right, 1 one is wrong, 2 usage, 3 a file cannot be read.
"""

import json
import os
import sys

RING = 65536
MAX_BUCKETS = 1024


# ---- Hashes ----------------------------------------------------------------------------------------------------------

def murmur3_32(data):
    """Murmur3, 32 bits, seed 0, as an unsigned number."""
    def rotate(x, r):
        return (x << r | x >> (32 - r)) & 0xFFFFFFFF

    def scramble(k):
        return rotate(k * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF

    h = 0
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        h = rotate(h ^ scramble(int.from_bytes(data[i:i + 4], "little")), 13)
        h = (h * 5 + 0xE6546B64) & 0xFFFFFFFF
    if whole < len(data):
        h ^= scramble(int.from_bytes(data[whole:], "little"))
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def hash_of(key):
    return murmur3_32(key.encode("utf-8"))


def segment_hash(key):
    return hash_of(key) >> 16


def bucket_hash(key):
    return hash_of(key) & 0xFFFF


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def java_order(text):
    """Java compares strings by their UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


# ---- Entry buckets ---------------------------------------------------------------------------------------------------

def equal_splits(count):
    return [i * RING // count for i in range(1, max(count, 1))]


def bucket_ranges(splits):
    starts = [0] + splits
    return [[start, end - 1] for start, end in zip(starts, starts[1:] + [RING])]


def bucket_of(splits, value):
    return sum(1 for start in splits if start <= value)


def splits_refused(splits):
    if any(not 0 <= start < RING for start in splits):
        return "out-of-ring"
    if any(a >= b for a, b in zip([0] + splits, splits)):
        return "not-ascending"
    return None


def declared_refused(ranges):
    if not ranges:
        return "empty"
    if any(not 0 <= value < RING for pair in ranges for value in pair):
        return "out-of-ring"
    if any(start > end for start, end in ranges) or any(a[1] >= b[0] for a, b in zip(ranges, ranges[1:])):
        return "not-ascending"
    if ranges[0][0] != 0 or ranges[-1][1] != RING - 1 or any(a[1] + 1 != b[0] for a, b in zip(ranges, ranges[1:])):
        return "not-tiling"
    return None


# ---- Layouts ---------------------------------------------------------------------------------------------------------

def route(layout, key):
    active = sorted((s for s in layout["segments"] if s["state"] == "ACTIVE"), key=lambda s: s["segment_id"])
    if all("legacy_topic_name" in s for s in active):
        return active[(hash_of(key) & 0x7FFFFFFF) % len(active)]["segment_id"]
    owners = [s["segment_id"] for s in active if s["hash_start"] <= segment_hash(key) <= s["hash_end"]]
    return owners[0] if len(owners) == 1 else None


def tiles(count):
    width = RING // count
    return [(i * width, RING - 1 if i + 1 == count else (i + 1) * width - 1) for i in range(count)]


def new_segment(number, bounds, epoch, at_ms, buckets):
    segment = {"segment_id": number, "hash_start": bounds[0], "hash_end": bounds[1], "state": "ACTIVE",
               "created_at_epoch": epoch, "created_at_ms": at_ms}
    splits = equal_splits(min(max(buckets, 1), MAX_BUCKETS))
    if splits:
        segment["entry_bucket_splits"] = splits
    return segment


def first_layout(change, at_ms):
    op = change["op"]
    topics = change.get("topics", [])
    count = change["segments"] if op == "create" else len(topics)
    each = change.get("bucket_budget", 1) // count
    segments = [new_segment(i, bounds, 0, at_ms, 1 if op == "synthetic" else each)
                for i, bounds in enumerate(tiles(count))]
    if op == "synthetic":
        for segment, topic in zip(segments, topics):
            segment["legacy_topic_name"] = topic
    if op == "migrate":
        sealed = []
        for i, topic in enumerate(topics):
            old = new_segment(i, (0, RING - 1), 0, at_ms, 1)
            old.update(state="SEALED", child_ids=list(range(count, 2 * count)), sealed_at_epoch=0, sealed_at_ms=at_ms,
                       legacy_topic_name=topic)
            sealed.append(old)
        for segment in segments:
            segment["segment_id"] += count
            segment["parent_ids"] = list(range(count))
        segments = sealed + segments
    return {"next_segment_id": len(segments), "layout": {"epoch": 0, "segments": segments}}


def active_refused(segment):
    if segment is None:
        return "unknown-segment"
    if segment["state"] != "ACTIVE":
        return "not-active"
    if "legacy_topic_name" in segment:
        return "legacy"
    return None


def bucket_count(segment):
    return len(segment.get("entry_bucket_splits", [])) + 1


def change_layout(before, change, at_ms):
    """The layout after a change, or the text of the refusal."""
    if before is None:
        return first_layout(change, at_ms)
    segments = {s["segment_id"]: s for s in before["layout"]["segments"]}
    epoch = before["layout"]["epoch"] + 1
    op, number = change["op"], change["segment_id"]
    if op == "prune":
        if number not in segments:
            return "unknown-segment"
        if segments[number]["state"] == "ACTIVE":
            return "active"
        left = []
        for segment in segments.values():
            if segment["segment_id"] == number:
                continue
            segment = dict(segment)
            for links in ("parent_ids", "child_ids"):
                kept = [i for i in segment.get(links, []) if i != number]
                segment.pop(links, None)
                if kept:
                    segment[links] = kept
            left.append(segment)
        return {"next_segment_id": before["next_segment_id"], "layout": {"epoch": epoch, "segments": left}}

    parents = [number, change["with"]] if op == "merge" else [number]
    for parent in parents:
        refused = active_refused(segments.get(parent))
        if refused:
            return refused
    first = segments[number]
    start, end, buckets = first["hash_start"], first["hash_end"], bucket_count(first)
    if op == "split":
        if start == end:
            return "too-narrow"
        middle = start + (end - start) // 2
        successors = [((start, middle), buckets // 2), ((middle + 1, end), buckets // 2)]
    elif op == "merge":
        low, high = sorted((first, segments[change["with"]]), key=lambda s: s["hash_start"])
        if low["hash_end"] + 1 != high["hash_start"]:
            return "not-adjacent"
        successors = [((low["hash_start"], high["hash_end"]), bucket_count(low) + bucket_count(high))]
    else:
        if not 1 <= change["buckets"] <= MAX_BUCKETS:
            return "bucket-count"
        if equal_splits(change["buckets"]) == first.get("entry_bucket_splits", []):
            return "same-buckets"
        successors = [((start, end), change["buckets"])]

    ids = [before["next_segment_id"] + i for i in range(len(successors))]
    result = []
    for segment in segments.values():
        if segment["segment_id"] in parents:
            segment = dict(segment, state="SEALED", child_ids=ids, sealed_at_epoch=epoch, sealed_at_ms=at_ms)
        result.append(segment)
    for i, (bounds, count) in zip(ids, successors):
        result.append(dict(new_segment(i, bounds, epoch, at_ms, count), parent_ids=parents))
    return {"next_segment_id": ids[-1] + 1, "layout": {"epoch": epoch, "segments": result}}


# ---- Names -----------------------------------------------------------------------------------------------------------

ENTITY = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-=:._")


def parse_topic(text, domains):
    """Domain, tenant, namespace, local name; or the text of the refusal."""
    if not text.strip():
        return "empty"
    if "://" in text:
        domain, rest = text.split("://", 1)
        if domain not in domains:
            return "domain"
        parts = rest.split("/", 2)
    else:
        domain, parts = "persistent", text.split("/")
        if domain not in domains:
            return "domain"
        if len(parts) == 1:
            parts = ["public", "default"] + parts
    if len(parts) != 3:
        return "parts"
    tenant, namespace, local = parts
    if not tenant or not set(tenant) <= ENTITY:
        return "tenant"
    if not namespace or not set(namespace) <= ENTITY:
        return "namespace"
    if not local.strip() or (domain.endswith("persistent") and "/" in local):
        return "local"
    return domain, tenant, namespace, local


def number_of(text, digits, base, limit):
    """A number with an optional plus sign; None for anything else."""
    digits_only = text[1:] if text.startswith("+") else text
    if not digits_only or not set(digits_only.lower()) <= set(digits):
        return None
    value = int(digits_only, base)
    return value if value <= limit else None


def parse_segment(text):
    """The segment's parts, or the text of the refusal."""
    name = parse_topic(text, ("segment",))
    if isinstance(name, str):
        return name
    _, tenant, namespace, local = name
    topic, _, descriptor = local.rpartition("/")
    parts = descriptor.split("-", 2)
    if not topic.strip() or len(parts) != 3:
        return "descriptor"
    start, end = (number_of(part, "0123456789abcdef", 16, RING - 1) for part in parts[:2])
    if start is None or end is None:
        return "hash"
    if end < start:
        return "range"
    number = number_of(parts[2], "0123456789", 10, 2 ** 63 - 1)
    if number is None:
        return "id"
    return {"topic": f"topic://{tenant}/{namespace}/{topic}", "hash_start": start, "hash_end": end,
            "segment_id": number}


def segment_name(topic, start, end, number):
    return f"segment{topic[len('topic'):]}/{start:04x}-{end:04x}-{number}"


# ---- Assignments and bucket owners -----------------------------------------------------------------------------------

def assignable(case):
    segments = {s["segment_id"]: s for s in case["layout"]["segments"]}
    drained = set(case["drained"])

    def ancestors_drained(segment, seen):
        for parent in segment.get("parent_ids", []):
            if parent not in segments or parent in seen:
                continue
            seen.add(parent)
            if parent not in drained or not ancestors_drained(segments[parent], seen):
                return False
        return True

    def wanted(segment):
        if case["consumer_type"] == "CHECKPOINT":
            return True
        return (segment["state"] == "ACTIVE" or segment["segment_id"] not in drained) \
            and ancestors_drained(segment, set())

    return sorted(filter(wanted, segments.values()), key=lambda s: (s["hash_start"], s["hash_end"], s["segment_id"]))


def assign(case):
    segments = assignable(case)
    consumers = sorted(case["consumers"], key=java_order)
    result = {consumer: [] for consumer in consumers}

    def give(consumer, segment, shared):
        ranges = bucket_ranges(segment.get("entry_bucket_splits", [])) if shared else []
        result[consumer].append({
            "segment_id": segment["segment_id"], "hash_start": segment["hash_start"], "hash_end": segment["hash_end"],
            "segment_topic": segment.get("legacy_topic_name") or segment_name(
                case["topic"], segment["hash_start"], segment["hash_end"], segment["segment_id"]),
            "bucket_ranges": [{"start": start, "end": end} for start, end in ranges]})

    if len(consumers) <= len(segments) or case["consumer_type"] == "CHECKPOINT":
        for i, segment in enumerate(segments):
            give(consumers[i % len(consumers)], segment, False)
        return result
    owners, surplus = [1] * len(segments), len(consumers) - len(segments)
    took = True
    while surplus and took:
        took = False
        for i, segment in enumerate(segments):
            if surplus and owners[i] < bucket_count(segment):
                owners[i] += 1
                surplus -= 1
                took = True
    for segment, count in zip(segments, owners):
        for _ in range(count):
            give(consumers.pop(0), segment, count > 1)
    return result


def slices(buckets, consumers):
    members = sorted(consumers, key=lambda c: (java_order(c["name"]), c["consumer_id"]))
    k = len(members)
    return [{"consumer": c, "from": j * buckets // k, "to": (j + 1) * buckets // k} for j, c in enumerate(members)]


def owner(parts, bucket):
    found = [part["consumer"] for part in parts if part["from"] <= bucket < part["to"]]
    return found[0] if found else None


# ---- Frames ----------------------------------------------------------------------------------------------------------

U, B, T, X = "number", "bool", "text", "hex"
SEGMENT_STATE = ["ACTIVE", "SEALED"]
CONSUMER_TYPE = ["STREAM", "CHECKPOINT"]
SERVER_ERROR = [
    "UnknownError", "MetadataError", "PersistenceError", "AuthenticationError", "AuthorizationError", "ConsumerBusy",
    "ServiceNotReady", "ProducerBlockedQuotaExceededError", "ProducerBlockedQuotaExceededException", "ChecksumError",
    "UnsupportedVersionError", "TopicNotFound", "SubscriptionNotFound", "ConsumerNotFound", "TooManyRequests",
    "TopicTerminatedError", "ProducerBusy", "InvalidTopicName", "IncompatibleSchema", "ConsumerAssignError",
    "TransactionCoordinatorNotFound", "InvalidTxnStatus", "NotAllowedError", "TransactionConflict",
    "TransactionNotFound", "ProducerFenced"]

# Field number → name and type: a scalar, a list of value names, or the fields of a message. A star stands for repeated.
RANGE = {1: ("start", U), 2: ("end", U)}
SEGMENT = {1: ("segment_id", U), 2: ("hash_start", U), 3: ("hash_end", U), 4: ("state", SEGMENT_STATE),
           5: ("*parent_ids", U), 6: ("*child_ids", U), 7: ("created_at_epoch", U), 8: ("sealed_at_epoch", U),
           9: ("created_at_ms", U), 10: ("sealed_at_ms", U), 11: ("legacy_topic_name", T),
           12: ("*entry_bucket_splits", U)}
ADDRESS = {1: ("segment_id", U), 2: ("broker_url", T), 3: ("broker_url_tls", T)}
DAG = {1: ("epoch", U), 2: ("*segments", SEGMENT), 3: ("*segment_brokers", ADDRESS), 4: ("controller_broker_url", T),
       5: ("controller_broker_url_tls", T)}
ASSIGNED = {1: ("segment_id", U), 2: ("hash_start", U), 3: ("hash_end", U), 4: ("segment_topic", T),
            5: ("*bucket_ranges", RANGE)}
ASSIGNMENT = {1: ("layout_epoch", U), 2: ("*segments", ASSIGNED)}
TC = {1: ("tc_id", U), 2: ("broker_service_url", T), 3: ("broker_service_url_tls", T)}
COMMANDS = {
    70: ("SCALABLE_TOPIC_LOOKUP", {1: ("session_id", U), 2: ("topic", T), 3: ("create_if_missing", B)}),
    71: ("SCALABLE_TOPIC_UPDATE", {1: ("session_id", U), 2: ("dag", DAG), 3: ("error", SERVER_ERROR),
                                   4: ("message", T), 5: ("resolved_topic_name", T)}),
    72: ("SCALABLE_TOPIC_CLOSE", {1: ("session_id", U)}),
    73: ("SCALABLE_TOPIC_SUBSCRIBE", {1: ("request_id", U), 2: ("topic", T), 3: ("subscription", T),
                                      4: ("consumer_name", T), 5: ("consumer_id", U),
                                      6: ("consumer_type", CONSUMER_TYPE)}),
    74: ("SCALABLE_TOPIC_SUBSCRIBE_RESPONSE", {1: ("request_id", U), 2: ("error", SERVER_ERROR), 3: ("message", T),
                                               4: ("assignment", ASSIGNMENT)}),
    75: ("SCALABLE_TOPIC_ASSIGNMENT_UPDATE", {1: ("consumer_id", U), 2: ("assignment", ASSIGNMENT)}),
    76: ("WATCH_SCALABLE_TOPICS", {1: ("watch_id", U), 2: ("namespace", T),
                                   3: ("*property_filters", {1: ("key", T), 2: ("value", T)}),
                                   4: ("current_hash", T)}),
    77: ("WATCH_SCALABLE_TOPICS_UPDATE", {1: ("watch_id", U), 2: ("snapshot", {1: ("*topics", T)}),
                                          3: ("diff", {1: ("*added", T), 2: ("*removed", T)}),
                                          4: ("error", SERVER_ERROR), 5: ("message", T)}),
    78: ("WATCH_SCALABLE_TOPICS_CLOSE", {1: ("watch_id", U)}),
    79: ("WATCH_TC_ASSIGNMENTS", {1: ("watch_id", U)}),
    80: ("WATCH_TC_ASSIGNMENTS_UPDATE", {1: ("watch_id", U),
                                         2: ("snapshot", {1: ("parallelism", U), 2: ("*assignments", TC)}),
                                         3: ("error", SERVER_ERROR), 4: ("message", T)}),
    81: ("WATCH_TC_ASSIGNMENTS_CLOSE", {1: ("watch_id", U)}),
    82: ("SCALABLE_TOPIC_UNSUBSCRIBE", {1: ("request_id", U), 2: ("consumer_id", U)}),
}


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def raw_fields(data):
    """Number and value of each field: a number, or bytes."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        elif key & 7 == 2:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {key & 7}")
        yield key >> 3, value


def decode(data, table):
    result = {}
    for number, value in raw_fields(data):
        if number not in table:
            continue
        name, kind = table[number]
        if kind == B:
            value = bool(value)
        elif kind == T:
            value = value.decode("utf-8")
        elif kind == X:
            value = value.hex()
        elif isinstance(kind, list):
            value = kind[value]
        elif isinstance(kind, dict):
            value = decode(value, kind)
        if name.startswith("*"):
            result.setdefault(name[1:], []).append(value)
        else:
            result[name] = value
    return result


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode(fields, table):
    out = b""
    for number in sorted(table):
        name, kind = table[number]
        values = fields.get(name.lstrip("*"), []) if name.startswith("*") else \
            [fields[name]] if name in fields else []
        for value in values:
            if kind in (U, B):
                out += varint(number << 3) + varint(int(value))
            elif isinstance(kind, list):
                out += varint(number << 3) + varint(kind.index(value))
            else:
                data = value.encode("utf-8") if kind == T else bytes.fromhex(value) if kind == X else encode(value, kind)
                out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


# ---- Entries ---------------------------------------------------------------------------------------------------------

KEY_VALUE = {1: ("key", T), 2: ("value", T)}
METADATA = {1: ("producer_name", T), 2: ("sequence_id", U), 3: ("publish_time", U), 4: ("*properties", KEY_VALUE),
            6: ("partition_key", T), 8: ("compression", ["NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"]),
            9: ("uncompressed_size", U), 11: ("num_messages_in_batch", U), 12: ("event_time", U),
            13: ("*encryption_keys", {1: ("key", T), 2: ("value", X), 3: ("*metadata", KEY_VALUE)}),
            15: ("encryption_param", X), 19: ("deliver_at_time", U), 24: ("highest_sequence_id", U), 26: ("uuid", T),
            27: ("num_chunks_from_msg", U), 28: ("total_chunk_msg_size", U), 29: ("chunk_id", U),
            33: ("entry_hash_min", U), 34: ("entry_hash_max", U)}
MEMBER = {1: ("*properties", KEY_VALUE), 2: ("partition_key", T), 3: ("payload_size", U), 5: ("event_time", U),
          8: ("sequence_id", U)}


def sized(data, at):
    """What follows a size of four bytes, and where it ends."""
    end = at + 4 + int.from_bytes(data[at:at + 4], "big")
    if end > len(data):
        raise ValueError("cut off")
    return data[at + 4:end], end


def members(metadata, payload):
    """The members of a batch: fields and payloads. Of anything else none, as the payload is one message's."""
    found, at = [], 0
    if "encryption_keys" not in metadata:
        for _ in range(metadata.get("num_messages_in_batch", 0)):
            single, at = sized(payload, at)
            single = decode(single, MEMBER)
            found.append((single, payload[at:at + single["payload_size"]]))
            at += single["payload_size"]
        if found and at != len(payload):
            raise ValueError("bytes behind the last member")
    return found


# ---- Checks: each yields (what, expected by the file, computed here) ---------------------------------------------------

def check_hashing(case):
    utf8 = case["key"].encode("utf-8")
    yield "utf8", case["utf8"], utf8.hex()
    yield "raw", case["raw"], murmur3_32(utf8)
    yield "segment_hash", case["segment_hash"], segment_hash(case["key"])
    yield "bucket_hash", case["bucket_hash"], bucket_hash(case["key"])


def check_legacy_routing(case):
    raw = hash_of(case["key"])
    yield "raw", case["raw"], raw
    yield "masked", case["masked"], raw & 0x7FFFFFFF
    for n, choice in case["choices"].items():
        yield n, choice, (raw & 0x7FFFFFFF) % int(n)


def check_segment_routing(case):
    for key, segment in case["routes"].items():
        yield key, segment, route(case["layout"], key)


def check_bucket_routing(case):
    for key, bucket in case["buckets"].items():
        yield key, bucket, bucket_of(case["entry_bucket_splits"], bucket_hash(key))


def check_bucket_boundaries(case):
    splits = case.get("entry_bucket_splits")
    if case["kind"] == "equal":
        yield "entry_bucket_splits", splits, equal_splits(case["count"])
    elif case["kind"] == "splits":
        refused = splits_refused(splits)
        yield "refused", case.get("refused"), refused
        if refused is None:
            yield "ranges", case.get("ranges"), bucket_ranges(splits)
            canonical = [max(start, 1) for start, _ in bucket_ranges(splits)]
            yield "canonical", case.get("canonical"), canonical if len(set(canonical)) == len(canonical) else None
    elif case["kind"] == "declared":
        refused = declared_refused(case["ranges"])
        yield "refused", case.get("refused"), refused
        if refused is None:
            yield "entry_bucket_splits", splits, [start for start, _ in case["ranges"][1:]]
            yield "refused_by_pulsar", case.get("refused_by_pulsar", False), case["ranges"][0][1] == 0
    else:
        raise ValueError("unknown kind")


def check_topic_names(case):
    parsed = parse_topic(case["input"], ("topic", "persistent", "non-persistent"))
    if isinstance(parsed, str):
        yield "refused", case.get("refused"), parsed
        yield "name", case.get("name"), None
    else:
        domain, tenant, namespace, local = parsed
        yield "name", case.get("name"), {"canonical": f"{domain}://{tenant}/{namespace}/{local}", "domain": domain,
                                         "tenant": tenant, "namespace": namespace, "local": local}
        yield "refused", case.get("refused"), None


def check_segment_names(case):
    if case["kind"] == "build":
        parts = case["segment"]
        yield "name", case["name"], segment_name(
            parts["topic"], parts["hash_start"], parts["hash_end"], parts["segment_id"])
        return
    if case["kind"] != "parse":
        raise ValueError("unknown kind")
    parsed = parse_segment(case["input"])
    if isinstance(parsed, str):
        yield "refused", case.get("refused"), parsed
        yield "segment", case.get("segment"), None
    else:
        canonical = segment_name(parsed["topic"], parsed["hash_start"], parsed["hash_end"], parsed["segment_id"])
        yield "segment", case.get("segment"), parsed
        yield "lenient", case.get("lenient", False), canonical != case["input"]
        yield "refused", case.get("refused"), None


def check_layout_changes(case):
    result = change_layout(case["before"], case["change"], case["at_ms"])
    refused = result if isinstance(result, str) else None
    yield "refused", case.get("refused"), refused
    yield "after", case.get("after"), None if refused else result


def check_assignments(case):
    yield "assignable", case["assignable"], [s["segment_id"] for s in assignable(case)]
    yield "assignments", case["assignments"], assign(case)


def check_bucket_owners(case):
    members = list(case["consumers"])
    if "join" in case["change"]:
        members.append(case["change"]["join"])
    else:
        members.remove(case["change"]["leave"])
    before, after = slices(case["buckets"], case["consumers"]), slices(case["buckets"], members)
    moves = [{"bucket": i, "from": owner(before, i), "to": owner(after, i)} for i in range(case["buckets"])]
    yield "before", case["before"], before
    yield "after", case["after"], after
    yield "moved", case["moved"], [move for move in moves if move["from"] != move["to"]]


def check_bucket_batches(case):
    hashes = [None if key is None else bucket_hash(key) for key in case["keys"]]
    batches = {}
    for i, value in enumerate(hashes):
        if value is not None:
            batches.setdefault(bucket_of(case["entry_bucket_splits"], value), []).append(i)
    yield "unbatched", case["unbatched"], hashes
    yield "keyless", case["keyless"], [i for i, value in enumerate(hashes) if value is None]
    yield "batches", case["batches"], [
        {"bucket": bucket, "messages": messages, "entry_hash_min": min(hashes[i] for i in messages),
         "entry_hash_max": max(hashes[i] for i in messages)} for bucket, messages in sorted(batches.items())]


def check_namespace_hash(case):
    crc = crc32c(",".join(sorted(case["topics"], key=java_order)).encode("utf-8"))
    yield "crc32c", case["crc32c"], crc
    yield "current_hash", case["current_hash"], crc.to_bytes(4, "little").hex()


def check_frames(case):
    frame = bytes.fromhex(case["frame"])
    command = frame[8:]
    yield "total size", int.from_bytes(frame[:4], "big"), len(frame) - 4
    yield "command size", int.from_bytes(frame[4:8], "big"), len(command)
    top = dict(raw_fields(command))
    name, table = COMMANDS[top[1]]
    yield "command", (case["number"], case["command"]), (top[1], name)
    yield "fields", case["fields"], decode(top[top[1]], table)
    body = encode(case["fields"], table)
    again = varint(1 << 3) + varint(top[1]) + varint(top[1] << 3 | 2) + varint(len(body)) + body
    yield "unknown_fields", case.get("unknown_fields", False), again != command


def check_entries(case):
    messages, begun = [], {}
    for place, stored in enumerate(case["entries"]):
        entry = bytes.fromhex(stored["entry"])
        body, end = sized(entry, 6)
        metadata, payload = decode(body, METADATA), entry[end:]
        yield "magic", "0e01", entry[:2].hex()
        yield "checksum on the wire", stored["crc32c"], int.from_bytes(entry[2:6], "big")
        yield "crc32c", stored["crc32c"], crc32c(entry[6:])
        yield "metadata", stored["metadata"], metadata
        yield "fields ascend", body, encode(metadata, METADATA)
        batch = members(metadata, payload)
        yield "members", stored.get("members", []), [single for single, _ in batch]
        for index, (single, value) in enumerate(batch):
            messages.append({"key": single.get("partition_key"), "payload": value.hex(), "entries": [place],
                             "sequence_id": single.get("sequence_id", metadata["sequence_id"] + index)})
        if batch:
            continue
        entries = [place]
        if "uuid" in metadata:
            parts = begun.setdefault(metadata["uuid"], [])
            if len(parts) != metadata["chunk_id"]:
                # It was there already, or one before it is lost.
                continue
            parts.append((place, payload))
            if len(parts) < metadata["num_chunks_from_msg"]:
                continue
            entries, payload = [at for at, _ in parts], b"".join(part for _, part in parts)
            yield "total size", metadata["total_chunk_msg_size"], len(payload)
        messages.append({"key": metadata.get("partition_key"), "sequence_id": metadata["sequence_id"],
                         "payload": payload.hex(), "entries": entries})
    yield "messages", case["messages"], messages


CHECKS = {
    "hashing": check_hashing, "legacy-routing": check_legacy_routing, "segment-routing": check_segment_routing,
    "bucket-routing": check_bucket_routing, "bucket-boundaries": check_bucket_boundaries,
    "topic-names": check_topic_names, "segment-names": check_segment_names, "layout-changes": check_layout_changes,
    "assignments": check_assignments, "bucket-owners": check_bucket_owners, "bucket-batches": check_bucket_batches,
    "namespace-hash": check_namespace_hash, "frames": check_frames, "entries": check_entries,
}


def check_file(path, name):
    """Prints what is wrong in a file; returns how many cases and how many wrong values it has."""
    with open(path, encoding="ascii") as file:
        cases = json.load(file)["cases"]
    wrong = 0 if cases else 1
    for number, case in enumerate(cases, 1):
        try:
            differing = [found for found in CHECKS[name](case) if found[1] != found[2]]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            differing = [("case", "a case that can be checked", repr(error))]
        for what, expected, computed in differing:
            print(f"{name}: case {number}, {what!r}: the file says {expected!r}, computed {computed!r}",
                  file=sys.stderr)
        wrong += len(differing)
    return len(cases), wrong


def main():
    if len(sys.argv) > 2:
        print(__doc__, file=sys.stderr)
        return 2
    directory = sys.argv[1] if len(sys.argv) == 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "v1")
    cases = wrong = 0
    for name in CHECKS:
        try:
            found, bad = check_file(os.path.join(directory, name + ".json"), name)
        except (OSError, ValueError, KeyError) as error:
            print(f"cannot read {name}.json: {error!r}", file=sys.stderr)
            return 3
        print(f"{name}: {found} cases, {bad} wrong")
        cases, wrong = cases + found, wrong + bad
    unknown = sorted(set(os.listdir(directory)) - {name + ".json" for name in CHECKS})
    for name in unknown:
        print(f"{name}: this verifier does not know the file", file=sys.stderr)
    print(f"{cases} cases, {wrong} wrong")
    return 1 if wrong or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
