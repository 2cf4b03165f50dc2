/* SPDX-License-Identifier: MIT */
#include "s3/proto/failure.h"

#include <errno.h>

static const struct {
	const char *code;
	unsigned status;
	const char *text;
} all[FAILURE_N] = {
	[FAILURE_ACCESS_DENIED] = { "AccessDenied", 403, "Access denied." },
	[FAILURE_EXPIRED] = { "AccessDenied", 403, "Request has expired." },
	[FAILURE_BAD_AUTHORIZATION] = { "AuthorizationHeaderMalformed", 400,
					"The authorization header is "
					"malformed." },
	[FAILURE_BAD_QUERY_AUTHORIZATION] = { "AuthorizationQueryParametersErro"
					      "r",
					      400,
					      "The authorization parameters of "
					      "the query are malformed." },
	[FAILURE_BAD_DIGEST] = { "XAmzContentSHA256Mismatch", 400,
				 "x-amz-content-sha256 is not that of the "
				 "body." },
	[FAILURE_BAD_TOKEN] = { "InvalidToken", 400,
				"There are no temporary credentials here." },
	[FAILURE_INTERNAL] = { "InternalError", 500,
			       "An internal error occurred. Try again." },
	[FAILURE_INVALID_ACCESS_KEY] = { "InvalidAccessKeyId", 403,
					 "The access key is not known." },
	[FAILURE_INVALID_ARGUMENT] = { "InvalidArgument", 400,
				       "Invalid argument." },
	[FAILURE_INVALID_RANGE] = { "InvalidRange", 416,
				    "The requested range is not satisfiable." },
	[FAILURE_INVALID_REQUEST] = { "InvalidRequest", 400,
				      "Invalid request." },
	[FAILURE_INVALID_URI] = { "InvalidURI", 400,
				  "Could not parse the URI." },
	[FAILURE_METHOD] = { "MethodNotAllowed", 405,
			     "The dataset is read-only." },
	[FAILURE_NOT_IMPLEMENTED] = { "NotImplemented", 501,
				      "This is not implemented." },
	[FAILURE_NOT_MODIFIED] = { "NotModified", 304, "Not modified." },
	[FAILURE_NO_SUCH_BUCKET] = { "NoSuchBucket", 404,
				     "The bucket does not exist." },
	[FAILURE_NO_SUCH_KEY] = { "NoSuchKey", 404, "The key does not exist." },
	[FAILURE_PRECONDITION] = { "PreconditionFailed", 412,
				   "A precondition does not hold." },
	[FAILURE_SIGNATURE] = { "SignatureDoesNotMatch", 403,
				"The signature does not match. Check the "
				"secret key and the signing method." },
	[FAILURE_SKEWED] = { "RequestTimeTooSkewed", 403,
			     "The time of the request differs too much from "
			     "the time here." },
	[FAILURE_SLOW_DOWN] = { "SlowDown", 503, "Reduce your request rate." },
	[FAILURE_TIMEOUT] = { "RequestTimeout", 400,
			      "The request took too long." },
	[FAILURE_UNAVAILABLE] = { "ServiceUnavailable", 503,
				  "The service is not available now." },
	[FAILURE_BUCKET_LIMIT] = { "TooManyBuckets", 400,
				   "There is one bucket here." },
	[FAILURE_CONTENT_MD5] = { "BadDigest", 400,
				  "The checksum is not that of the body." },
	[FAILURE_INVALID_DIGEST] = { "InvalidDigest", 400,
				     "Content-MD5 is no MD5 in base64." },
	[FAILURE_INCOMPLETE] = { "IncompleteBody", 400,
				 "The body is not as its headers say." },
	[FAILURE_INVALID_PART] = { "InvalidPart", 400,
				   "A part is not there, or has another "
				   "ETag." },
	[FAILURE_INVALID_PART_ORDER] = { "InvalidPartOrder", 400,
					 "Parts are listed by ascending "
					 "numbers." },
	[FAILURE_INVALID_STORAGE_CLASS] = { "InvalidStorageClass", 400,
					    "The storage class is not known "
					    "here." },
	[FAILURE_KEY_TOO_LONG] = { "KeyTooLongError", 400,
				   "A key has 1024 bytes at most." },
	[FAILURE_MALFORMED_TRAILER] = { "MalformedTrailerError", 400,
					"The headers behind the body are "
					"malformed." },
	[FAILURE_MALFORMED_XML] = { "MalformedXML", 400,
				    "The XML is not well-formed, or not what "
				    "belongs here." },
	[FAILURE_METADATA_TOO_LARGE] = { "MetadataTooLarge", 400,
					 "The metadata are too large." },
	[FAILURE_MISSING_LENGTH] = { "MissingContentLength", 411,
				     "Content-Length is required." },
	[FAILURE_NO_ACL] = { "AccessControlListNotSupported", 400,
			     "The bucket has no access control lists." },
	[FAILURE_NO_SUCH_UPLOAD] = { "NoSuchUpload", 404,
				     "The upload does not exist: it may have "
				     "been completed or aborted." },
	[FAILURE_TOO_LARGE] = { "EntityTooLarge", 400,
				"The body is larger than is allowed." },
	[FAILURE_TOO_SMALL] = { "EntityTooSmall", 400,
				"A part but the last has less than 5 MiB." },
	[FAILURE_FULL] = { "XMinioStorageFull", 507,
			   "The store is full: delete some objects." },
	[FAILURE_NO_ANSWER] = { "NoAnswer", 0, "" },
};

const char *failure_code(enum failure f)
{
	return all[f].code;
}

unsigned failure_status(enum failure f)
{
	return all[f].status;
}

const char *failure_text(enum failure f)
{
	return all[f].text;
}

enum failure failure_of(int error)
{
	switch (-error) {
	case 0: return FAILURE_NONE;
	case EACCES:
	case EPERM: return FAILURE_ACCESS_DENIED;
	case ENOENT: return FAILURE_NO_SUCH_KEY;
	case EBUSY: return FAILURE_SLOW_DOWN;
	case ENOSPC:
	case EDQUOT: return FAILURE_FULL;
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ECONNABORTED: return FAILURE_UNAVAILABLE;
	case ETIMEDOUT: return FAILURE_TIMEOUT;
	case ECONNRESET: return FAILURE_NO_ANSWER;
	default: return FAILURE_INTERNAL;
	}
}
