// Names of the headers of the protocol. Emitted exactly as spelled here: one client copies headers
// into a dictionary that is case-sensitive.
#pragma once

#include "base/header_name.h"

namespace orrery::headers {

// ── HTTP's own ──
inline constexpr HeaderName kAccept = "accept";
inline constexpr HeaderName kAcceptEncoding = "accept-encoding";
inline constexpr HeaderName kCacheControl = "cache-control";
inline constexpr HeaderName kConnection = "connection";
inline constexpr HeaderName kContentLength = "content-length";
inline constexpr HeaderName kContentType = "content-type";
inline constexpr HeaderName kDate = "date";
inline constexpr HeaderName kEtag = "etag";
inline constexpr HeaderName kExpect = "expect";
inline constexpr HeaderName kHost = "host";
inline constexpr HeaderName kIfMatch = "if-match";
inline constexpr HeaderName kIfModifiedSince = "if-modified-since";
inline constexpr HeaderName kIfNoneMatch = "if-none-match";
inline constexpr HeaderName kOrigin = "origin";
inline constexpr HeaderName kPragma = "pragma";
/// A list: `return=minimal`, and on change feeds Orrery's `wait=N`.
inline constexpr HeaderName kPrefer = "prefer";
/// The name of an attachment that is uploaded raw.
inline constexpr HeaderName kSlug = "slug";
inline constexpr HeaderName kTransferEncoding = "transfer-encoding";
inline constexpr HeaderName kUserAgent = "user-agent";
/// "Accept instance manipulation" (RFC 3229): `Incremental Feed`, `Full-Fidelity Feed`.
inline constexpr HeaderName kAIm = "a-im";

// ── Who asks, when, and in which dialect ──
inline constexpr HeaderName kAuthorization = "authorization";
inline constexpr HeaderName kXDate = "x-ms-date";
inline constexpr HeaderName kVersion = "x-ms-version";
inline constexpr HeaderName kXUserAgent = "x-ms-useragent";
inline constexpr HeaderName kActivityId = "x-ms-activity-id";
/// No dash before "id", unlike the one above.
inline constexpr HeaderName kCorrelatedActivityId = "x-ms-cosmos-correlated-activityid";
inline constexpr HeaderName kClientId = "x-ms-client-id";
inline constexpr HeaderName kSdkSupportedCapabilities = "x-ms-cosmos-sdk-supportedcapabilities";
inline constexpr HeaderName kExpirySeconds = "x-ms-documentdb-expiry-seconds";

// ── Which item or range ──
inline constexpr HeaderName kPartitionKey = "x-ms-documentdb-partitionkey";
/// In requests `<id>` or `<collection rid>,<id>`; in responses the id of the range that answered.
inline constexpr HeaderName kPartitionKeyRangeId = "x-ms-documentdb-partitionkeyrangeid";
inline constexpr HeaderName kStartEpk = "x-ms-start-epk";
inline constexpr HeaderName kEndEpk = "x-ms-end-epk";
inline constexpr HeaderName kReadKeyType = "x-ms-read-key-type";
inline constexpr HeaderName kIntendedCollectionRid = "x-ms-cosmos-intended-collection-rid";
inline constexpr HeaderName kDatabaseRid = "x-ms-cosmos-database-rid";

// ── Consistency ──
inline constexpr HeaderName kConsistencyLevel = "x-ms-consistency-level";
inline constexpr HeaderName kSessionToken = "x-ms-session-token";

// ── Feeds ──
inline constexpr HeaderName kMaxItemCount = "x-ms-max-item-count";
/// Never sent empty: JS4 takes that for "more results" and spins.
inline constexpr HeaderName kContinuation = "x-ms-continuation";
inline constexpr HeaderName kContinuationLimitInKb =
    "x-ms-documentdb-responsecontinuationtokenlimitinkb";
inline constexpr HeaderName kItemCount = "x-ms-item-count";
inline constexpr HeaderName kChangeFeedWireFormatVersion =
    "x-ms-cosmos-changefeed-wire-format-version";

// ── Writes ──
inline constexpr HeaderName kIsUpsert = "x-ms-documentdb-is-upsert";
inline constexpr HeaderName kIndexingDirective = "x-ms-indexing-directive";
inline constexpr HeaderName kPreTriggerInclude = "x-ms-documentdb-pre-trigger-include";
inline constexpr HeaderName kPreTriggerExclude = "x-ms-documentdb-pre-trigger-exclude";
inline constexpr HeaderName kPostTriggerInclude = "x-ms-documentdb-post-trigger-include";
inline constexpr HeaderName kPostTriggerExclude = "x-ms-documentdb-post-trigger-exclude";
inline constexpr HeaderName kIsBatchRequest = "x-ms-cosmos-is-batch-request";
inline constexpr HeaderName kBatchAtomic = "x-ms-cosmos-batch-atomic";
inline constexpr HeaderName kBatchOrdered = "x-ms-cosmos-batch-ordered";
inline constexpr HeaderName kBatchContinueOnError = "x-ms-cosmos-batch-continue-on-error";
inline constexpr HeaderName kAllowTentativeWrites = "x-ms-cosmos-allow-tentative-writes";
inline constexpr HeaderName kNoRetry449 = "x-ms-noretry-449";

// ── Queries ──
/// No dash inside "isquery", unlike "is-upsert".
inline constexpr HeaderName kIsQuery = "x-ms-documentdb-isquery";
/// A second way, of some SDKs, to say `true`; it does not hold the query.
inline constexpr HeaderName kQuery = "x-ms-documentdb-query";
inline constexpr HeaderName kEnableCrossPartition = "x-ms-documentdb-query-enablecrosspartition";
inline constexpr HeaderName kParallelizeCrossPartition =
    "x-ms-documentdb-query-parallelizecrosspartitionquery";
inline constexpr HeaderName kEnableScan = "x-ms-documentdb-query-enable-scan";
inline constexpr HeaderName kEmitTraces = "x-ms-documentdb-query-emit-traces";
inline constexpr HeaderName kIsContinuationExpected =
    "x-ms-documentdb-query-iscontinuationexpected";
inline constexpr HeaderName kPopulateQueryMetrics = "x-ms-documentdb-populatequerymetrics";
inline constexpr HeaderName kPopulateIndexMetrics = "x-ms-cosmos-populateindexmetrics";
/// Clients send its "v2" as a capital V2.
inline constexpr HeaderName kPopulateIndexMetricsV2 = "x-ms-cosmos-populateindexmetrics-v2";
inline constexpr HeaderName kPopulateQueryAdvice = "x-ms-cosmos-populatequeryadvice";
inline constexpr HeaderName kIsQueryPlanRequest = "x-ms-cosmos-is-query-plan-request";
inline constexpr HeaderName kSupportedQueryFeatures = "x-ms-cosmos-supported-query-features";
inline constexpr HeaderName kQueryVersion = "x-ms-cosmos-query-version";
inline constexpr HeaderName kContentSerializationFormat =
    "x-ms-documentdb-content-serialization-format";
inline constexpr HeaderName kSupportedSerializationFormats =
    "x-ms-cosmos-supported-serialization-formats";
inline constexpr HeaderName kQueryMetrics = "x-ms-documentdb-query-metrics";
inline constexpr HeaderName kIndexUtilization = "x-ms-cosmos-index-utilization";
inline constexpr HeaderName kQueryExecutionInfo = "x-ms-cosmos-query-execution-info";
inline constexpr HeaderName kQueryAdvice = "x-ms-cosmos-query-advice";

// ── Scripts ──
inline constexpr HeaderName kScriptEnableLogging = "x-ms-documentdb-script-enable-logging";
/// Its value is percent-encoded text.
inline constexpr HeaderName kScriptLogResults = "x-ms-documentdb-script-log-results";

// ── Throughput and quotas ──
inline constexpr HeaderName kOfferThroughput = "x-ms-offer-throughput";
inline constexpr HeaderName kOfferType = "x-ms-offer-type";
inline constexpr HeaderName kAutopilotSettings = "x-ms-cosmos-offer-autopilot-settings";
inline constexpr HeaderName kOfferIsRuPerMinuteEnabled =
    "x-ms-offer-is-ru-per-minute-throughput-enabled";
inline constexpr HeaderName kDisableRuPerMinuteUsage =
    "x-ms-documentdb-disable-ru-per-minute-usage";
inline constexpr HeaderName kMigrateToAutopilot = "x-ms-cosmos-migrate-offer-to-autopilot";
inline constexpr HeaderName kMigrateToManual = "x-ms-cosmos-migrate-offer-to-manual-throughput";
inline constexpr HeaderName kMinThroughput = "x-ms-cosmos-min-throughput";
inline constexpr HeaderName kOfferReplacePending = "x-ms-offer-replace-pending";
inline constexpr HeaderName kPopulateQuotaInfo = "x-ms-documentdb-populatequotainfo";
inline constexpr HeaderName kPopulatePartitionStatistics =
    "x-ms-documentdb-populatepartitionstatistics";
inline constexpr HeaderName kResourceQuota = "x-ms-resource-quota";
inline constexpr HeaderName kResourceUsage = "x-ms-resource-usage";
inline constexpr HeaderName kRequestCharge = "x-ms-request-charge";
inline constexpr HeaderName kPriorityLevel = "x-ms-cosmos-priority-level";
inline constexpr HeaderName kThroughputBucket = "x-ms-cosmos-throughput-bucket";

// ── Accepted and ignored ──
inline constexpr HeaderName kIsClientEncrypted = "x-ms-cosmos-is-client-encrypted";
/// No dash inside "cachedreads".
inline constexpr HeaderName kAllowCachedReads = "x-ms-cosmos-allow-cachedreads";
inline constexpr HeaderName kThinClientOperationType = "x-ms-thinclient-proxy-operation-type";
inline constexpr HeaderName kThinClientResourceType = "x-ms-thinclient-proxy-resource-type";
inline constexpr HeaderName kDedicatedGatewayMaxAge = "x-ms-dedicatedgateway-max-age";
inline constexpr HeaderName kDedicatedGatewayBypassCache = "x-ms-dedicatedgateway-bypass-cache";
inline constexpr HeaderName kHubRegionProcessingOnly = "x-ms-cosmos-hub-region-processing-only";
inline constexpr HeaderName kApiType = "x-ms-cosmos-apitype";
inline constexpr HeaderName kForceRefresh = "x-ms-force-refresh";

// ── Responses: outcome ──
inline constexpr HeaderName kSubstatus = "x-ms-substatus";
inline constexpr HeaderName kRetryAfterMs = "x-ms-retry-after-ms";
inline constexpr HeaderName kServiceVersion = "x-ms-serviceversion";
inline constexpr HeaderName kGatewayVersion = "x-ms-gatewayversion";
inline constexpr HeaderName kSchemaVersion = "x-ms-schemaversion";
inline constexpr HeaderName kLastStateChangeUtc = "x-ms-last-state-change-utc";
inline constexpr HeaderName kRequestDurationMs = "x-ms-request-duration-ms";

// ── Responses: where the resource is ──
/// The owner's path by names, percent-encoded: `dbs/d/colls/c` for what lies in a container.
inline constexpr HeaderName kAltContentPath = "x-ms-alt-content-path";
/// The owner's rid: the container's for what lies in it, the database's for a container.
inline constexpr HeaderName kContentPath = "x-ms-content-path";

// ── Responses: positions ──
/// Without the prefix that all others have.
inline constexpr HeaderName kLsn = "lsn";
inline constexpr HeaderName kItemLsn = "x-ms-item-lsn";
/// A double l, for "local": not a slip.
inline constexpr HeaderName kLocalLsn = "x-ms-cosmos-llsn";
inline constexpr HeaderName kItemLocalLsn = "x-ms-cosmos-item-llsn";
inline constexpr HeaderName kQuorumAckedLsn = "x-ms-quorum-acked-lsn";
inline constexpr HeaderName kQuorumAckedLocalLsn = "x-ms-cosmos-quorum-acked-llsn";
inline constexpr HeaderName kGlobalCommittedLsn = "x-ms-global-committed-lsn";
inline constexpr HeaderName kNumberOfReadRegions = "x-ms-number-of-read-regions";
inline constexpr HeaderName kCurrentWriteQuorum = "x-ms-current-write-quorum";
inline constexpr HeaderName kCurrentReplicaSetSize = "x-ms-current-replica-set-size";
inline constexpr HeaderName kTransportRequestId = "x-ms-transport-request-id";
inline constexpr HeaderName kXpRole = "x-ms-xp-role";

// ── Responses: containers and the account ──
inline constexpr HeaderName kIndexTransformationProgress =
    "x-ms-documentdb-collection-index-transformation-progress";
/// Only for containers that are indexed lazily: tests assert its absence otherwise.
inline constexpr HeaderName kLazyIndexingProgress =
    "x-ms-documentdb-collection-lazy-indexing-progress";
inline constexpr HeaderName kMaxMediaStorageUsageMb = "x-ms-max-media-storage-usage-mb";
inline constexpr HeaderName kMediaStorageUsageMb = "x-ms-media-storage-usage-mb";
/// "databaseaccount" is one word in these three.
inline constexpr HeaderName kAccountConsumedMb = "x-ms-databaseaccount-consumed-mb";
inline constexpr HeaderName kAccountReservedMb = "x-ms-databaseaccount-reserved-mb";
inline constexpr HeaderName kAccountProvisionedMb = "x-ms-databaseaccount-provisioned-mb";

// ── Orrery's own, beyond the service ──
/// Percent-encoded UTF-8: an SQL predicate over `c`, and what to send of each item.
inline constexpr HeaderName kFeedFilter = "x-orrery-feed-filter";
inline constexpr HeaderName kFeedSelect = "x-orrery-feed-select";
/// `container`: all ranges in one cursor.
inline constexpr HeaderName kFeedScope = "x-orrery-feed-scope";
/// `tombstones`: deletes also in the latest-version feed.
inline constexpr HeaderName kFeedDeletes = "x-orrery-feed-deletes";
/// `scan` never uses an index, `index` waits for those that the query wants, `auto` is the default.
inline constexpr HeaderName kQueryAccess = "x-orrery-query-access";
/// `serve`: the server merges the answers of several ranges; `plan`: it refuses what is more than a
/// filter with the plan by which clients merge. Without it the server's own option counts.
inline constexpr HeaderName kCrossPartitionQueries = "x-orrery-cross-partition-queries";
/// Of a query `true`; of its answer, percent-encoded JSON: how the rows were found.
inline constexpr HeaderName kExplain = "x-orrery-explain";
inline constexpr HeaderName kResolvedTs = "x-orrery-resolved-ts";
inline constexpr HeaderName kPendingItems = "x-orrery-pending-items";
inline constexpr HeaderName kPendingBytes = "x-orrery-pending-bytes";
inline constexpr HeaderName kPendingLsn = "x-orrery-pending-lsn";
inline constexpr HeaderName kOldestPendingTs = "x-orrery-oldest-pending-ts";
/// The life of the store: number and id. A new one begins when its data was put back from a copy.
inline constexpr HeaderName kLife = "x-orrery-life";
/// Of a page that is asked for from a position of a life that ended.
inline constexpr HeaderName kFeedWarning = "x-orrery-feed-warning";
inline constexpr HeaderName kPreferenceApplied = "preference-applied";
inline constexpr HeaderName kLastEventId = "last-event-id";

}  // namespace orrery::headers
