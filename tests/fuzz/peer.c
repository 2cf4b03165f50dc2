/* SPDX-License-Identifier: MIT */
/* What comes over a connection between nodes: the greeting, the lengths of
 * frames, and the messages in them, as if they had been opened. */
#include <string.h>

#include "common/util.h"
#include "fs/peer/peer_proto.h"
#include "net/frame.h"
#include "net/wire.h"
#include "tests/fuzz/fuzz.h"

static void check_message(const unsigned char *bytes, size_t n)
{
	static const struct peer_hello mine = { .version = PEER_VERSION,
						.nodes = 2 };
	unsigned char head[PEER_HEAD];
	struct peer_msg m;
	size_t n_head;

	if (peer_decode(bytes, n, &m) < 0)
		return;
	n_head = peer_encode(&m, head);
	PROMISED(n_head + m.n_data == n);
	PROMISED(!memcmp(head, bytes, n_head));
	PROMISED(!m.n_data || m.data == bytes + n_head);
	if (m.type == PEER_HELLO)
		PROMISED(peer_reason_text(
			peer_compare(&mine, &m.hello, m.hello.node)));
	if (m.type == PEER_REFUSE)
		PROMISED(peer_reason_text(m.reason));
}

/* The first byte: how long a message may be, and how many bytes come at
 * once. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct frame_in in = { 0 };
	size_t piece, most;
	uint32_t version;
	int r = 0;

	if (n < 1 + FRAME_GREETING)
		return 0;
	piece = 1 + data[0] % 16 * 100;
	most = data[0] & 0x80 ? 1 << 16 : 256;
	frame_check_greeting(data + 1, &version);
	data++;
	n--;
	while (n && r == 0) {
		unsigned char *frame;
		size_t room, got = MIN(piece, n);
		unsigned char *to = frame_space(&in, &room);

		PROMISED(to && room > 0);
		got = MIN(got, room);
		memcpy(to, data, got);
		data += got;
		n -= got;
		frame_add(&in, got);
		if (!in.most && !frame_take(&in, FRAME_GREETING))
			continue;
		in.most = most;
		while ((r = frame_next(&in, &frame, &room)) == 1) {
			PROMISED(room > FRAME_HEADER + SEAL_TAG &&
				 room <= FRAME_HEADER + most + SEAL_TAG);
			check_message(frame + FRAME_HEADER,
				      room - FRAME_HEADER - SEAL_TAG);
		}
		PROMISED(in.room <=
			 MAX(FRAME_HEADER + most + SEAL_TAG, (size_t)16 << 10));
	}
	frame_in_fini(&in);
	return 0;
}
