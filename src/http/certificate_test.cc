#include "http/certificate.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

#include "http/tls.h"

namespace orrery::http {
namespace {

constexpr UnixSeconds kNow = 1'700'000'000;
constexpr UnixSeconds kDay = 24 * 60 * 60;

class CertificateTest : public testing::Test {
 protected:
  Certificate made =
      make_self_signed_certificate({"cosmos.example.com", "10.1.2.3", "fe80::1"}, kNow).value();

  bool serves(std::string_view name, UnixSeconds now = kNow) const {
    return certificate_serves(made.certificate_pem, name, now);
  }
};

TEST_F(CertificateTest, ServesTheLocalNamesAndThoseAskedFor) {
  EXPECT_TRUE(serves("localhost"));
  EXPECT_TRUE(serves("127.0.0.1"));
  EXPECT_TRUE(serves("::1"));
  EXPECT_TRUE(serves("cosmos.example.com"));
  EXPECT_TRUE(serves("10.1.2.3"));
  EXPECT_TRUE(serves("fe80::1"));
}

TEST_F(CertificateTest, ServesNoOtherNames) {
  EXPECT_FALSE(serves("example.com"));
  EXPECT_FALSE(serves("10.1.2.4"));
  EXPECT_FALSE(serves(""));
}

TEST_F(CertificateTest, ServesFromADayAgoForTenYears) {
  EXPECT_TRUE(serves("localhost", kNow - kDay + 60));
  EXPECT_FALSE(serves("localhost", kNow - kDay - 60));
  EXPECT_TRUE(serves("localhost", kNow + 3649 * kDay));
  EXPECT_FALSE(serves("localhost", kNow + 3651 * kDay));
}

TEST_F(CertificateTest, SaysWhyItDoesNotServe) {
  const auto state = [&](std::string_view name, UnixSeconds now) {
    return certificate_state(made.certificate_pem, name, now);
  };
  EXPECT_EQ(state("localhost", kNow), CertificateState::Valid);
  EXPECT_EQ(state("localhost", kNow - 10 * kDay), CertificateState::NotYetValid);
  EXPECT_EQ(state("localhost", kNow + 3651 * kDay), CertificateState::Expired);
  EXPECT_EQ(state("example.com", kNow - 10 * kDay), CertificateState::OtherName);
  EXPECT_EQ(certificate_state("", "localhost", kNow), CertificateState::Unreadable);
}

TEST_F(CertificateTest, BelongsToItsOwnKeyOnly) {
  EXPECT_TRUE(belong_together(made));
  const auto other = make_self_signed_certificate({}, kNow).value();
  EXPECT_FALSE(belong_together({made.certificate_pem, other.key_pem}));
  EXPECT_FALSE(belong_together({made.certificate_pem, ""}));
}

TEST_F(CertificateTest, IsItsOwnTrustAnchor) {
  std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(made.certificate_pem.data(), static_cast<int>(made.certificate_pem.size())),
      BIO_free);
  std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free);
  ASSERT_TRUE(certificate);
  EXPECT_EQ(X509_check_ca(certificate.get()), 1);
  EXPECT_EQ(X509_get_key_usage(certificate.get()),
            static_cast<std::uint32_t>(KU_DIGITAL_SIGNATURE | KU_KEY_CERT_SIGN));
  EXPECT_EQ(X509_get_extended_key_usage(certificate.get()),
            static_cast<std::uint32_t>(XKU_SSL_SERVER));
  EXPECT_EQ(X509_verify(certificate.get(), X509_get0_pubkey(certificate.get())), 1);
  EXPECT_EQ(X509_get_version(certificate.get()), X509_VERSION_3);
}

TEST_F(CertificateTest, DiffersEveryTime) {
  const auto other = make_self_signed_certificate({}, kNow).value();
  EXPECT_NE(made.certificate_pem, other.certificate_pem);
  EXPECT_NE(made.key_pem, other.key_pem);
}

TEST_F(CertificateTest, CanBeUsedForTls) {
  EXPECT_TRUE(TlsContext::make(made.certificate_pem, made.key_pem, false));
}

TEST_F(CertificateTest, WithTheKeyOfAnotherIsRefused) {
  const auto other = make_self_signed_certificate({}, kNow).value();
  const auto context = TlsContext::make(made.certificate_pem, other.key_pem, false);
  ASSERT_FALSE(context);
  EXPECT_EQ(context.error().code(), ErrorCode::BadRequest);
}

TEST(Certificate, ThatIsNoneServesNobody) {
  EXPECT_FALSE(certificate_serves("", "localhost", kNow));
  EXPECT_FALSE(certificate_serves("-----BEGIN CERTIFICATE-----\nAAAA\n", "localhost", kNow));
}

}  // namespace
}  // namespace orrery::http
