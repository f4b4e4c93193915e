#include "transport/frame_codec.hpp"

#include <utility>

#include "troupe/runtime/v1/link.pb.h"
#include "troupe/strict_parse.hpp"

namespace troupe {
namespace {

Error bad_frame(const std::string& what) { return cluster_error("", "malformed frame: " + what); }

bool is_traffic_class(std::uint32_t value) { return value < traffic_class_count; }

DecodedFrame decode_chunk(runtime::v1::FrameHeader::Chunk& wire, Blob piece) {
  ChunkFrame frame;
  frame.traffic = static_cast<TrafficClass>(wire.traffic());
  frame.chunk.message = wire.message();
  frame.chunk.offset = wire.offset();
  frame.chunk.piece = std::move(piece);
  if (wire.has_opening()) {
    auto& opening = *wire.mutable_opening();
    frame.chunk.opening =
        Opening{std::move(*opening.mutable_from()), std::move(*opening.mutable_to()),
                opening.payload_bytes(), opening.unit(), std::move(*opening.mutable_header())};
  }
  return frame;
}

DecodedFrame decode_credit(runtime::v1::FrameHeader::Credit& wire) {
  CreditFrame frame;
  frame.traffic = static_cast<TrafficClass>(wire.traffic());
  frame.chunk_bytes = wire.chunk_bytes();
  frame.admission_bytes = wire.admission_bytes();
  frame.from = std::move(*wire.mutable_from());
  frame.to = std::move(*wire.mutable_to());
  frame.unit = wire.unit();
  return frame;
}

}  // namespace

std::string encode_header(TrafficClass traffic, const Chunk& chunk) {
  runtime::v1::FrameHeader header;
  auto& wire = *header.mutable_chunk();
  wire.set_traffic(static_cast<std::uint32_t>(traffic));
  wire.set_message(chunk.message);
  wire.set_offset(chunk.offset);
  if (chunk.opening) {
    auto& opening = *wire.mutable_opening();
    opening.set_from(chunk.opening->from);
    opening.set_to(chunk.opening->to);
    opening.set_payload_bytes(chunk.opening->payload_bytes);
    opening.set_unit(chunk.opening->unit);
    opening.set_header(chunk.opening->header);
  }
  return header.SerializeAsString();
}

std::string encode_header(const CreditFrame& credit) {
  runtime::v1::FrameHeader header;
  auto& wire = *header.mutable_credit();
  wire.set_traffic(static_cast<std::uint32_t>(credit.traffic));
  wire.set_chunk_bytes(credit.chunk_bytes);
  wire.set_admission_bytes(credit.admission_bytes);
  wire.set_from(credit.from);
  wire.set_to(credit.to);
  wire.set_unit(credit.unit);
  return header.SerializeAsString();
}

std::string encode_header(const HeartbeatFrame& heartbeat) {
  runtime::v1::FrameHeader header;
  header.mutable_heartbeat()->set_count(heartbeat.count);
  return header.SerializeAsString();
}

Result<DecodedFrame> decode(Frame frame) {
  runtime::v1::FrameHeader header;
  if (auto parsed = parse_strictly(frame.header, header); !parsed) {
    Error error = bad_frame(parsed.error().what);
    error.hint = parsed.error().hint;
    return error;
  }
  switch (header.kind_case()) {
    case runtime::v1::FrameHeader::kChunk:
      if (!is_traffic_class(header.chunk().traffic())) return bad_frame("unknown traffic class");
      return decode_chunk(*header.mutable_chunk(), std::move(frame.payload));
    case runtime::v1::FrameHeader::kCredit:
      if (!is_traffic_class(header.credit().traffic())) return bad_frame("unknown traffic class");
      return decode_credit(*header.mutable_credit());
    case runtime::v1::FrameHeader::kHeartbeat:
      return DecodedFrame(HeartbeatFrame{header.heartbeat().count()});
    case runtime::v1::FrameHeader::KIND_NOT_SET: break;
  }
  return bad_frame("it has no kind");
}

}  // namespace troupe
